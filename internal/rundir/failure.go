package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// FailureKind is what went wrong with a run; empty is unknown.
type FailureKind string

const (
	// Died is a rank whose process ended before its work was done: it was killed, it panicked, or
	// it returned an error.
	Died FailureKind = "died"
	// Stuck is a rank that others waited for too long.
	Stuck FailureKind = "stuck"
	// Mismatch is a disagreement of ranks about the collective that they are in.
	Mismatch FailureKind = "mismatch"
	// NaN is a loss that is no longer a number.
	NaN FailureKind = "nan"
	// OutOfMemory is a device without memory left.
	OutOfMemory FailureKind = "out of memory"
	// Error is any other that the program reported.
	Error FailureKind = "error"
)

// Failure is why a run ended: the rank that failed first, and how.
type Failure struct {
	Kind FailureKind `json:"kind"`
	// Rank is the rank that failed first, on Host.
	Rank int    `json:"rank"`
	Host string `json:"host"`
	// Step is the last training step that the rank reported; 0 where it reported none.
	Step int64 `json:"step"`
	// Error says what happened; it may have several lines.
	Error string    `json:"error"`
	Time  time.Time `json:"time"`
	// ExitCode is the failing process' own; 0 where it is not known.
	ExitCode int `json:"exit_code,omitempty"`
	// LogTail is the end of the rank's log.
	LogTail []string `json:"log_tail"`
	// Ranks says what each rank was doing, where that helps.
	Ranks []string `json:"ranks,omitempty"`
}

// FailurePath is the file with the run's Failure.
func (d Dir) FailurePath() string { return d.join("failure.json") }

// Stacks is the folder of the goroutine stacks that ranks leave when one of them is stuck.
func (d Dir) Stacks() string { return d.join("stacks") }

// StackPath is the file with one rank's goroutine stacks.
func (d Dir) StackPath(rank int) string {
	return filepath.Join(d.Stacks(), "rank-"+strconv.Itoa(rank)+".txt")
}

// Write records the failure in d, unless one is recorded already: the first writer wins, on any
// node. It reports whether that was this one.
func (f Failure) Write(d Dir) (first bool, err error) {
	text, err := jsonText(f)
	if err == nil {
		first, err = createWhole(d.FailurePath(), text)
	}
	if err != nil {
		return false, fmt.Errorf("record the failure of rank %d: %w", f.Rank, err)
	}
	return first, nil
}

// Replace records the failure in place of the one that the same rank has recorded in d, now that
// more is known.
func (f Failure) Replace(d Dir) error {
	if err := WriteJSON(d.FailurePath(), f); err != nil {
		return fmt.Errorf("record the failure of rank %d: %w", f.Rank, err)
	}
	return nil
}

// createWhole writes a file that does not exist yet; readers see all of it or nothing. It reports
// whether it created the file.
func createWhole(path string, data []byte) (created bool, err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.Remove(tmp.Name())) }()
	if err := fill(tmp, data, keepOwner(tmp, path, 0o600)); err != nil {
		return false, err
	}
	// A link, unlike a rename, fails where the name is taken.
	switch err := os.Link(tmp.Name(), path); {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrExist):
		return linked(tmp.Name()), nil
	}
	// A file system without hard links.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, fill(f, data, keepOwner(f, path, 0o600))
}

// linked reports whether a file has a second name. NFS may report that a link exists already when
// it has just made it.
func linked(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}

// ReadFailure reads the failure that d records. The error is fs.ErrNotExist if there is none.
func ReadFailure(d Dir) (Failure, error) {
	var f Failure
	if err := ReadJSON(d.FailurePath(), &f); err != nil {
		return f, fmt.Errorf("failure of the run: %w", err)
	}
	return f, nil
}

// ClearFailure removes the record of a failure, because the run starts again.
func ClearFailure(d Dir) error {
	if err := os.Remove(d.FailurePath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the failure of an earlier start: %w", err)
	}
	return nil
}
