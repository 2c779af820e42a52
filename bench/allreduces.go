package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// allReduceReport is the result of measureAllReduces.
type allReduceReport struct {
	CPU    string           `json:"cpu"`
	Load   string           `json:"load_average_before"`
	Rounds int              `json:"rounds"`
	Worlds []allReduceWorld `json:"worlds"`
}

// allReduceWorld has the contenders on a number of ranks.
type allReduceWorld struct {
	Ranks int            `json:"ranks"`
	Bytes []int          `json:"bytes"`
	Rows  []allReduceRow `json:"contenders"`
}

// allReduceRow is a contender: the median times of an all-reduce, in microseconds, in the order of
// the sizes, and those of each round. The raw ones are of MPI_Allreduce in the same processes, only
// of our program.
type allReduceRow struct {
	Name      string      `json:"name"`
	Version   string      `json:"version,omitempty"`
	Micros    []float64   `json:"micros"`
	Raw       []float64   `json:"raw_micros,omitempty"`
	Rounds    [][]float64 `json:"rounds"`
	RawRounds [][]float64 `json:"raw_rounds,omitempty"`
}

// allReduceTurn is one size: BLOCKS measurements of CHAIN all-reduces each, after a warm-up.
type allReduceTurn struct{ bytes, chain, blocks int }

func (t allReduceTurn) String() string { return fmt.Sprintf("%d:%d:%d", t.bytes, t.chain, t.blocks) }

// fewTurns are the sizes for many ranks, which take long on few cores.
var (
	allTurns = []allReduceTurn{
		{4, 200, 20}, {4 << 10, 200, 20}, {64 << 10, 60, 20}, {256 << 10, 60, 12}, {1 << 20, 40, 12},
		{4 << 20, 10, 10}, {16 << 20, 4, 8}, {64 << 20, 2, 4}, {256 << 20, 1, 4},
	}
	fewTurns = []allReduceTurn{{4, 200, 20}, {64 << 10, 60, 12}, {1 << 20, 40, 10}, {16 << 20, 4, 6}, {64 << 20, 1, 4}}
)

// The contenders, in the order of the columns. The C program and our own one use the same library.
const (
	inProgram = "in a program, Open MPI"
	rawMPI    = "MPI_Allreduce"
	rawHuge   = "MPI_Allreduce, huge pages"
	overTCP   = "in a program, our TCP"
	overGloo  = "gloo"
)

// mostReduceRounds keeps the measurement under three minutes.
const mostReduceRounds = 3

// measureAllReduces makes the contenders take turns, with one core for each rank.
func measureAllReduces(ctx context.Context, opts options, out io.Writer) (allReduceReport, error) {
	report := allReduceReport{CPU: cpuModel(), Load: loadAverage(), Rounds: min(opts.rounds, mostReduceRounds)}
	available, err := cores()
	if err != nil {
		return report, err
	}
	if len(available) < 2 {
		return report, fmt.Errorf("%s available, and 2 ranks that need one each: use a machine with more", plural.Of(len(available), "core"))
	}
	all, err := reducers(ctx, opts)
	if err != nil {
		return report, err
	}
	for ranks := 2; ranks <= min(4, len(available)); ranks++ {
		w := allReduceWorld{Ranks: ranks}
		turns := allTurns
		if ranks > 2 {
			turns = fewTurns
		}
		if err := w.measure(ctx, all, turns, available[:ranks], report.Rounds, out); err != nil {
			return report, err
		}
		report.Worlds = append(report.Worlds, w)
	}
	return report, nil
}

// reducers builds our program and the C program.
func reducers(ctx context.Context, opts options) ([]contender, error) {
	osu, err := opts.osuContender()
	if err != nil {
		return nil, err
	}
	ours, err := build(ctx, "./bench/allreduce", "bench-allreduce")
	if err != nil {
		return nil, err
	}
	raw, err := compile(ctx, filepath.Join("bench", "peers", "allreduce.c"), "bench-allreduce-c")
	if err != nil {
		return nil, err
	}
	python := filepath.Join(".cache", "bench-venv", "bin", "python")
	return append([]contender{
		{name: inProgram, start: mpi(ours)},
		{name: rawMPI, start: mpi(raw)},
		contender{name: rawHuge, start: mpi(raw)}.environ(keepMemory...),
		contender{name: overTCP, start: torchrun(ours)}.environ(rundir.EnvDevices+"=1", rundir.EnvPlatform+"=cpu"),
		{name: overGloo, start: torchrun(python, "bench/peers/gloo_allreduce.py")},
	}, osu...), nil
}

// compile compiles a C program with Open MPI's library, and returns its absolute path.
func compile(ctx context.Context, source, name string) (string, error) {
	program, err := filepath.Abs(filepath.Join(".cache", "bin", name))
	if err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(ctx, "cc", "-O3", "-o", program, source, "-l:libmpi.so.40").CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile %s with Open MPI 4 or 5 (Debian: apt-get install gcc openmpi-bin): %w\n%s", source, err, out)
	}
	return program, nil
}

// measure fills in the medians.
func (w *allReduceWorld) measure(ctx context.Context, all []contender, turns []allReduceTurn, cores []int, rounds int, out io.Writer) error {
	for _, t := range turns {
		w.Bytes = append(w.Bytes, t.bytes)
	}
	w.Rows = make([]allReduceRow, len(all))
	for round := range rounds {
		for i, c := range all {
			m, err := reduce(ctx, c, cores, turns)
			if err != nil {
				return err
			}
			if c.name == inProgram && m.Raw == nil {
				return fmt.Errorf("%s: it did not connect its ranks by Open MPI, with which it is compared: unset %s", c.name, rundir.EnvMPILibrary)
			}
			fmt.Fprintf(out, "%d ranks, round %d: %-26s %v us\n", w.Ranks, round+1, c.name, m.Micros)
			w.Rows[i].Name, w.Rows[i].Version = c.name, m.Version
			w.Rows[i].Rounds = append(w.Rows[i].Rounds, m.Micros)
			if m.Raw != nil {
				w.Rows[i].RawRounds = append(w.Rows[i].RawRounds, m.Raw)
			}
		}
	}
	for i := range w.Rows {
		w.Rows[i].fill(len(turns))
	}
	return nil
}

// fill sets the medians.
func (r *allReduceRow) fill(turns int) {
	for j := range turns {
		of := func(micros []float64) float64 { return micros[j] }
		r.Micros = append(r.Micros, median(r.Rounds, of))
		if r.RawRounds != nil {
			r.Raw = append(r.Raw, median(r.RawRounds, of))
		}
	}
}

// ratio is how long an all-reduce in the program takes, with MPI_Allreduce in the same processes as
// 1: the median of the rounds.
func (r allReduceRow) ratio(turn int) float64 {
	var ratios []float64
	for i, raw := range r.RawRounds {
		ratios = append(ratios, r.Rounds[i][turn]/raw[turn])
	}
	return median(ratios, func(ratio float64) float64 { return ratio })
}

// reduce runs a contender once.
func reduce(ctx context.Context, c contender, cores []int, turns []allReduceTurn) (allReduceRow, error) {
	var m allReduceRow
	if c.name == overOSU {
		return reduceOSU(ctx, c, cores, turns)
	}
	args := make([]string, len(turns))
	for i, t := range turns {
		args[i] = t.String()
	}
	text, err := c.run(ctx, cores, args...)
	if err != nil {
		return m, err
	}
	err = json.Unmarshal([]byte(lastLine(text)), &m)
	if err == nil && (len(m.Micros) != len(turns) || m.Raw != nil && len(m.Raw) != len(turns)) {
		err = fmt.Errorf("it has %d, and %d of MPI_Allreduce", len(m.Micros), len(m.Raw))
	}
	if err != nil {
		return m, fmt.Errorf("%s: its last line must have the times of %s: %w\n%s", c.name, plural.Of(len(turns), "size"), err, text)
	}
	return m, nil
}

// of returns a contender's times.
func (w allReduceWorld) of(name string) allReduceRow {
	for _, row := range w.Rows {
		if row.Name == name {
			return row
		}
	}
	return allReduceRow{}
}

// markdown returns the report as tables.
func (r allReduceReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# All-reduce

The sum of float32 values over all ranks of this machine, with one core per rank, in microseconds.
Medians of %s, in which the contenders take turns; each round counts with its median.

The first three columns are of the same processes: all-reduces in the XLA program of a training step,
and calls of the same MPI_Allreduce from C, which take turns in blocks of some milliseconds; the
ratio is the median of those of the rounds. The next two are a C program that does nothing else, with
the C library's malloc, and with huge pages and freed memory that it keeps, as gonbatch has them by
itself. Other processes can be faster or slower for another reason: on a virtual machine, two cores may
be near one another or far apart, which makes a difference of up to four times and can change from one
start to the next. With -osu, the last column is OSU's osu_allreduce, which no Debian package has.
%s, load average before: %s.%s
`, plural.Of(r.Rounds, "round"), r.CPU, r.Load, busy(r.Load))
	for _, w := range r.Worlds {
		w.write(&b)
	}
	return b.String()
}

func (w allReduceWorld) write(b *strings.Builder) {
	ours, raw, huge, tcp, gloo := w.of(inProgram), w.of(rawMPI), w.of(rawHuge), w.of(overTCP), w.of(overGloo)
	fmt.Fprintf(b, "\n## %d ranks\n\n", w.Ranks)
	fmt.Fprintf(b, "| size | in a program, Open MPI | %s in turn | ratio | %s in C, %s | huge pages | in a program, our TCP | gloo, PyTorch %s | ratio |", rawMPI, rawMPI, raw.Version, gloo.Version)
	osu, line := w.of(overOSU), "\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
	if osu.Name != "" {
		fmt.Fprintf(b, " %s |", strings.TrimSpace(overOSU+" "+osu.Version))
		line += "--:|"
	}
	fmt.Fprintln(b, line)
	for i, bytes := range w.Bytes {
		fmt.Fprintf(b, "| %s | %s | %s | %.2f | %s | %s | %s | %s | %.2f |", size(bytes), micros(ours.Micros[i]), micros(ours.Raw[i]), ours.ratio(i),
			micros(raw.Micros[i]), micros(huge.Micros[i]), micros(tcp.Micros[i]), micros(gloo.Micros[i]), tcp.Micros[i]/gloo.Micros[i])
		if osu.Name != "" {
			fmt.Fprintf(b, " %s |", micros(osu.Micros[i]))
		}
		b.WriteString("\n")
	}
}

// micros returns a time with three digits.
func micros(value float64) string {
	if value >= 100 {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.3g", value)
}

// size returns a number of bytes for people.
func size(bytes int) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%d MB", bytes>>20)
	case bytes >= 1<<10:
		return fmt.Sprintf("%d KB", bytes>>10)
	}
	return fmt.Sprintf("%d B", bytes)
}
