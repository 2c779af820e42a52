package relay

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gonbatch/kernel/cell"
)

// The files of CellDir by which the kernel tells its go command and its start of programs what a cell wants, and hears of times.
const (
	timeFile  = "time"
	buildFile = "time-build"
	runFile   = "time-run"
	ranksFile = "ranks"
)

// prepareRun leaves word of %time and %distributed. A %distributed in a cell without a main is for
// the next cell that has one.
func (e *execution) prepareRun() {
	r := e.relay
	for _, name := range []string{timeFile, buildFile, runFile, ranksFile} {
		r.tell(name, "")
	}
	if rest, err := filepath.Glob(filepath.Join(r.opts.CellDir, "rank-*")); err == nil {
		for _, name := range rest {
			_ = os.Remove(name)
		}
	}
	if e.prepared.Err != nil {
		return
	}
	if e.prepared.Time {
		r.tell(timeFile, "yes\n")
	}
	ranks := r.ranks
	if e.prepared.Ranks > 0 {
		ranks = e.prepared.Ranks
	}
	if r.ranks = 0; !cell.HasMain(e.prepared.Code) {
		r.ranks = ranks
		return
	}
	if ranks > 0 {
		r.tell(ranksFile, fmt.Sprintf("%d %d\n", ranks, freePort()))
	}
}

// tell writes a file of CellDir; without text it removes it.
func (r *relay) tell(name, text string) {
	file := filepath.Join(r.opts.CellDir, name)
	err := os.Remove(file)
	if text != "" {
		err = os.WriteFile(file, []byte(text), 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log(err)
	}
}

// freePort is a port of this machine that nobody listens at.
func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 29500
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// tellTime prints where the time of a cell went.
func (e *execution) tellTime(begin, end time.Time) {
	if !e.prepared.Time {
		return
	}
	r := e.relay
	parts := []string{}
	last := begin
	for _, phase := range []struct{ name, file string }{{"imports", buildFile}, {"build", runFile}} {
		text, err := os.ReadFile(filepath.Join(r.opts.CellDir, phase.file))
		nanoseconds, parseErr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || parseErr != nil {
			continue
		}
		at := time.Unix(0, nanoseconds)
		parts = append(parts, fmt.Sprintf("%s %.2f s", phase.name, at.Sub(last).Seconds()))
		last = at
	}
	parts = append(parts, fmt.Sprintf("run %.2f s", end.Sub(last).Seconds()))
	text := fmt.Sprintf("time: %s; together %.2f s\n", strings.Join(parts, ", "), end.Sub(begin).Seconds())
	r.publish(e.request, "stream", object{"name": "stdout", "text": text})
}
