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

// FailureKind is the kind of a failure; empty if it is not known.
type FailureKind string

const (
	// Died means that a rank's process ended before its work was done: it was killed, it panicked,
	// or it returned an error.
	Died FailureKind = "died"
	// Stuck means that other ranks waited too long for a rank.
	Stuck FailureKind = "stuck"
	// Mismatch means that the ranks disagree about the collective that they are in.
	Mismatch FailureKind = "mismatch"
	// NaN means that a loss is no longer a number.
	NaN FailureKind = "nan"
	// OutOfMemory means that a device has no memory left.
	OutOfMemory FailureKind = "out of memory"
	// Error is any other error that the program reported.
	Error FailureKind = "error"
)

// Failure is why a run ended: the rank that failed first, and how.
type Failure struct {
	Kind FailureKind `json:"kind"`
	// Rank is the rank that failed first, on Host.
	Rank int    `json:"rank"`
	Host string `json:"host"`
	// Step is the last training step that the rank reported; 0 if it reported none.
	Step int64 `json:"step"`
	// Error says what happened; it may have several lines.
	Error string    `json:"error"`
	Time  time.Time `json:"time"`
	// ExitCode is the exit code of the failed process; 0 if it is not known.
	ExitCode int `json:"exit_code,omitempty"`
	// LogTail is the end of the rank's log.
	LogTail []string `json:"log_tail"`
	// Ranks says what each rank was doing, if that helps.
	Ranks []string `json:"ranks,omitempty"`
}

// FailurePath returns the path of the file with the run's Failure.
func (d Dir) FailurePath() string { return d.join("failure.json") }

// Stacks returns the path of the folder of the goroutine stacks that ranks write when one of them
// is stuck.
func (d Dir) Stacks() string { return d.join("stacks") }

// StackPath returns the path of the file with one rank's goroutine stacks.
func (d Dir) StackPath(rank int) string {
	return filepath.Join(d.Stacks(), "rank-"+strconv.Itoa(rank)+".txt")
}

// Write records the failure in d, unless one is already recorded: the first writer wins, on any
// node. first reports whether this call was the first.
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

// Replace replaces the failure that the same rank has recorded in d, now that more is known.
func (f Failure) Replace(d Dir) error {
	if err := WriteJSON(d.FailurePath(), f); err != nil {
		return fmt.Errorf("record the failure of rank %d: %w", f.Rank, err)
	}
	return nil
}

// createWhole writes a file that must not exist yet; readers see all of it or nothing. created
// reports whether it created the file.
func createWhole(path string, data []byte) (created bool, err error) {
	tmp, err := writeBeside(path, data, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.Remove(tmp)) }()
	// Unlike a rename, a link fails if the name is taken.
	switch err := os.Link(tmp, path); {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrExist):
		return linked(tmp), nil
	}
	// A file system without hard links.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, fill(f, data, 0o600)
}

// linked reports whether a file has a second name. NFS may report that a link already exists when
// it has just created it.
func linked(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}

// ReadFailure reads the failure recorded in d. The error is fs.ErrNotExist if there is none.
func ReadFailure(d Dir) (Failure, error) {
	var f Failure
	if err := ReadJSON(d.FailurePath(), &f); err != nil {
		return f, fmt.Errorf("failure of the run: %w", err)
	}
	return f, nil
}

// ClearFailure removes the record of a failure, because the run starts again.
func ClearFailure(d Dir) error {
	if err := remove(d.FailurePath()); err != nil {
		return fmt.Errorf("forget the failure of an earlier start: %w", err)
	}
	return nil
}
