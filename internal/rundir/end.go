package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// End is how one rank's program ended in a cell. The process that started it writes it.
type End struct {
	Rank int    `json:"rank"`
	Host string `json:"host"`
	// Step is the id of the step in SLURM that has started it.
	Step string `json:"step,omitempty"`
	// Code is the program's exit code, or 128 plus the signal that ended it, as in a shell.
	Code int `json:"code"`
	// Told is set if the program was told to stop before it ended, and Saved if it has saved then.
	Told  bool      `json:"told,omitempty"`
	Saved bool      `json:"saved,omitempty"`
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	// Memory is the largest resident set of one process, in bytes, and CPU the time that the
	// program and what it has waited for have computed, in seconds.
	Memory int64   `json:"memory_bytes"`
	CPU    float64 `json:"cpu_seconds"`
}

// Ends returns the path of the folder with the ends of all ranks: a folder for each start, with a
// folder for each cell, with a file for each rank.
func (d Dir) Ends() string { return d.join("ends") }

// EndsOf returns the path of the folder with the ends of a cell's ranks in a start of the run.
func (d Dir) EndsOf(start int, cell string) string {
	return filepath.Join(d.Ends(), strconv.Itoa(start), cell)
}

// Begin records that a rank of a cell has begun in a start of the run: then there is a folder for
// its end.
func Begin(d Dir, start int, cell string) error {
	folder := d.EndsOf(start, cell)
	// Create only these folders: a run directory that somebody has removed must not come back.
	for _, path := range []string{d.Ends(), filepath.Dir(folder), folder} {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// HasBegun reports whether a rank of a cell has begun in a start of the run.
func HasBegun(d Dir, start int, cell string) bool {
	_, err := os.Stat(d.EndsOf(start, cell))
	return !errors.Is(err, fs.ErrNotExist)
}

// Write records the end of a rank in a start of the run.
func (e End) Write(d Dir, start int, cell string) error {
	err := Begin(d, start, cell)
	if err == nil {
		err = WriteJSON(filepath.Join(d.EndsOf(start, cell), strconv.Itoa(e.Rank)), e)
	}
	if err != nil {
		return fmt.Errorf("record the end of rank %d: %w", e.Rank, err)
	}
	return nil
}

// ReadEnds returns the recorded ends of a cell's ranks in a start of the run, by rank.
func ReadEnds(d Dir, start int, cell string) (map[int]End, error) {
	entries, err := os.ReadDir(d.EndsOf(start, cell))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("ends of cell %s: %w", cell, err)
	}
	ends := map[int]End{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue // It is being written.
		}
		var e End
		if err := ReadJSON(filepath.Join(d.EndsOf(start, cell), entry.Name()), &e); err != nil {
			return nil, fmt.Errorf("ends of cell %s: %w", cell, err)
		}
		ends[e.Rank] = e
	}
	return ends, nil
}

// HaveSucceeded reports whether all ranks of a cell have recorded in a start of the run that they
// ended well, and not because they were told to stop.
func HaveSucceeded(d Dir, start int, cell string, ranks int) bool {
	ends, err := ReadEnds(d, start, cell)
	if _, stopped := os.Stat(d.Stopped(strconv.Itoa(start))); err != nil || stopped == nil {
		return false
	}
	for rank := range ranks {
		if end, ok := ends[rank]; !ok || end.Code != 0 || end.Told || end.Saved {
			return false
		}
	}
	return true
}

// FirstFailed returns the end of the rank that failed first. Ranks that were told to stop failed
// because of another, if there is one. ok is false if none has failed.
func FirstFailed(ends map[int]End) (first End, ok bool) {
	for _, e := range ends {
		if e.Code == 0 || e.Saved {
			continue
		}
		if !ok || first.Told && !e.Told || first.Told == e.Told && e.Ended.Before(first.Ended) {
			first, ok = e, true
		}
	}
	return first, ok
}

// LastFailed returns the end of the rank that failed first in the run's last start. ok is false if
// none has failed.
func LastFailed(d Dir) (first End, ok bool) {
	start, err := CountStarts(d)
	if err != nil {
		return first, false
	}
	cells, _ := os.ReadDir(filepath.Dir(d.EndsOf(start, "any"))) // There may be none.
	all := map[int]End{}
	for _, cell := range cells {
		ends, _ := ReadEnds(d, start, cell.Name()) // Others may be readable.
		if end, ok := FirstFailed(ends); ok {
			all[len(all)] = end
		}
	}
	return FirstFailed(all)
}

// Refresh makes the next reader of a folder in this process see what other nodes have written
// there: a network file system asks its server again about a folder in which its client has changed
// something.
func Refresh(folder string) {
	if f, err := os.CreateTemp(folder, ".refresh-"); err == nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
}
