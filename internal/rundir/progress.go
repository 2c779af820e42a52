package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Progress returns the path of the file with the last update that a training run has reported. It
// survives a kill, so the next start can read where the training died.
func (d Dir) Progress() string { return d.join("progress") }

// Deaths returns the path of the file with a line for each start in which a training run died: the
// start's number, the cell and the update.
func (d Dir) Deaths() string { return d.join("deaths") }

// ProgressFile records the training's current update. A nil ProgressFile records nothing.
type ProgressFile struct{ file *os.File }

// OpenProgress opens the progress of d, for reports by one process.
func OpenProgress(d Dir) (*ProgressFile, error) {
	f, err := os.OpenFile(d.Progress(), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("progress of run %s: %w", d.Name(), err)
	}
	return &ProgressFile{f}, nil
}

// Report records an update. It takes a few microseconds and survives a kill of the process. If the
// disk is full, the update is lost.
func (p *ProgressFile) Report(update int64) {
	if p != nil {
		_, _ = p.file.WriteAt(fmt.Appendf(nil, "%-20d\n", update), 0)
	}
}

// Close closes the file.
func (p *ProgressFile) Close() error {
	if p == nil {
		return nil
	}
	return p.file.Close()
}

// ReadProgress returns the last update that the running start has reported; 0 if there is none.
func ReadProgress(d Dir) int64 {
	text, err := ReadFile(d.Progress())
	if err != nil {
		return 0
	}
	update, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // 0 if a full disk has truncated the file.
	return update
}

// ClearProgress removes the progress. Call it when a cell begins.
func ClearProgress(d Dir) error {
	if err := remove(d.Progress()); err != nil {
		return fmt.Errorf("forget the progress of an earlier start: %w", err)
	}
	return nil
}

// Death is the end of a start whose rank died by itself.
type Death struct {
	Start  int
	Cell   string
	Update int64
}

// Repeats reports whether the start before d died at the same place, which is a bug in the program,
// not bad luck. Rank 0 reports the updates. When another rank dies, rank 0 may end before it
// reports the last one, so a difference of one doesn't count.
func (d Death) Repeats(before Death) bool {
	apart := d.Update - before.Update
	return before.Start == d.Start-1 && before.Cell == d.Cell && -1 <= apart && apart <= 1
}

// AddDeath records a death.
func AddDeath(dir Dir, d Death) error {
	if err := appendLine(dir.Deaths(), d.Start, d.Cell, d.Update); err != nil {
		return fmt.Errorf("record the death of start %d: %w", d.Start, err)
	}
	return nil
}

// LastDeaths returns the last two recorded deaths, the newest last. The zero value means that there
// is none.
func LastDeaths(dir Dir) (before, last Death, err error) {
	text, err := ReadFile(dir.Deaths())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return before, last, fmt.Errorf("deaths of run %s: %w", dir.Name(), err)
	}
	for line := range strings.Lines(string(text)) {
		var d Death
		if _, err := fmt.Sscan(line, &d.Start, &d.Cell, &d.Update); err == nil {
			before, last = last, d
		}
	}
	return before, last, nil
}
