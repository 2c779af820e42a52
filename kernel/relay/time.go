package relay

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gonbatch/kernel/build"
	"gonbatch/kernel/cell"
)

// More files in CellDir, besides those of package build, with which the kernel tells the start of
// programs what a cell wants, and gets times back.
const (
	importsFile = "time-imports"
	runFile     = "time-run"
	ranksFile   = "ranks"
)

// prepareRun writes the requests of %time and %distributed. In a cell without a main, %distributed
// applies to the next cell that has one.
func (e *execution) prepareRun() {
	r := e.relay
	for _, name := range []string{build.TimeFile, importsFile, build.BuildTime, build.LinkTime, runFile, ranksFile} {
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
		r.tell(build.TimeFile, "yes\n")
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

// tell writes a file in CellDir; without text it removes the file.
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

// freePort returns a free port on this machine.
func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 29500
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// phases are the phases of a cell, each with the file that has the time of its end: GoNB composes
// the program, then goimports, the compiler and the linker run.
var phases = []struct{ name, file string }{
	{"compose", importsFile}, {"imports", build.BuildTime}, {"compile", build.LinkTime}, {"link", runFile},
}

// tellTime prints where the cell's time went.
func (e *execution) tellTime(begin, end time.Time) {
	if !e.prepared.Time {
		return
	}
	e.print(fmt.Sprintf("time: %s; total %.2f s\n", e.relay.phaseTimes(begin, end), end.Sub(begin).Seconds()))
}

// phaseTimes lists the phases that the cell reached. The last one is the phase in which the cell
// ended: if there is no program, nothing ran.
func (r *relay) phaseTimes(begin, end time.Time) string {
	var parts []string
	last, missing := begin, ""
	add := func(name string, at time.Time) {
		parts = append(parts, fmt.Sprintf("%s %.2f s", name, at.Sub(last).Seconds()))
		last = at
	}
	for _, phase := range phases {
		at, ok := r.toldTime(phase.file)
		if !ok { // The linker doesn't run if the program is up to date.
			missing = cmp.Or(missing, phase.name)
			continue
		}
		add(phase.name, at)
		missing = ""
	}
	add(cmp.Or(missing, "run"), end)
	return strings.Join(parts, ", ")
}

// toldTime reads the time in a file in CellDir.
func (r *relay) toldTime(name string) (time.Time, bool) {
	text, err := os.ReadFile(filepath.Join(r.opts.CellDir, name))
	if err != nil {
		return time.Time{}, false
	}
	nanoseconds, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return time.Unix(0, nanoseconds), err == nil
}
