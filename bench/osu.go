package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// overOSU is osu_allreduce of the OSU micro-benchmarks (https://mvapich.cse.ohio-state.edu), which
// no Debian or PyPI package has. -osu names one that was built with the Open MPI of this machine.
const overOSU = "osu_allreduce"

// osuContender returns it, if -osu is set.
func (o options) osuContender() ([]contender, error) {
	if o.osu == "" {
		return nil, nil
	}
	path, err := filepath.Abs(o.osu)
	if err != nil {
		return nil, err
	}
	found, err := os.Stat(path)
	if err == nil && (found.IsDir() || found.Mode()&0o111 == 0) {
		err = fmt.Errorf("it is not a program")
	}
	if err != nil {
		return nil, fmt.Errorf("-osu %s: want osu_allreduce, built with this machine's Open MPI (Debian: libopenmpi-dev has mpicc): %w", o.osu, err)
	}
	return []contender{{name: overOSU, start: mpi(path)}}, nil
}

// osuArgs are the options that make osu_allreduce measure a turn.
func (t allReduceTurn) osuArgs() []string {
	// -M is the memory that it may use: it has a buffer to send and one to receive.
	return []string{"-m", fmt.Sprintf("%d:%d", t.bytes, t.bytes), "-M", strconv.Itoa(max(4*t.bytes, 512<<20)), "-x", strconv.Itoa(t.chain), "-i", strconv.Itoa(t.chain * t.blocks)}
}

// osuFloats makes new versions sum float32 values, rather than characters. Old ones always sum
// float32, and end with an error if they get it.
var osuFloats = []string{"-T", "mpi_float"}

// reduceOSU runs osu_allreduce once for each size: each has its own number of iterations.
func reduceOSU(ctx context.Context, c contender, cores []int, turns []allReduceTurn) (allReduceRow, error) {
	var row allReduceRow
	floats := osuFloats
	for i, t := range turns {
		text, err := c.run(ctx, cores, append(t.osuArgs(), floats...)...)
		if err != nil && i == 0 {
			floats = nil
			text, err = c.run(ctx, cores, t.osuArgs()...)
		}
		if err != nil {
			return row, err
		}
		micros, version, err := parseOSU(text, t.bytes)
		if err != nil {
			return row, fmt.Errorf("%s %s: %w:\n%s", c.name, strings.Join(t.osuArgs(), " "), err, text)
		}
		row.Micros, row.Version = append(row.Micros, micros), version
	}
	return row, nil
}

// parseOSU reads the time of a size, in microseconds, from a table with a title and lines of a size
// and an average time.
func parseOSU(text string, bytes int) (micros float64, version string, err error) {
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(line, "# OSU MPI Allreduce Latency Test"); ok {
			version = strings.TrimSpace(title)
		}
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != strconv.Itoa(bytes) {
			continue
		}
		micros, err := strconv.ParseFloat(words[1], 64)
		if err != nil || micros <= 0 {
			return 0, "", fmt.Errorf("%d bytes take %q us", bytes, words[1])
		}
		return micros, version, nil
	}
	return 0, "", fmt.Errorf("no line begins with %d", bytes)
}
