package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// RequeueCode is EX_TEMPFAIL: "I was told to stop, I saved a checkpoint, start me again".
const RequeueCode = 75

// NoRecordCode is EX_IOERR: what has happened is not recorded in the run directory, because the
// disk is full, for example.
const NoRecordCode = 74

// Unasked is a launcher's message about a program that ends with RequeueCode although nobody told
// it to stop: sysexits.h and others use that code for failures. It contains no character that is
// special in a shell.
var Unasked = fmt.Sprintf("gonbatch: exit code %d of a program that was not told to stop: it has failed", RequeueCode)

// Starts returns the path of the file with a line for each start of the run: the job's id, or
// "local", and the time.
func (d Dir) Starts() string { return d.join("starts") }

// Finished returns the path of the folder of marks for the cells that ended well, which no later
// start runs again.
func (d Dir) Finished() string { return d.join("finished") }

// finishedCell returns the path of the mark of one cell: a file with the number of the start that
// finished it.
func (d Dir) finishedCell(cell string) string { return filepath.Join(d.Finished(), cell) }

// Stopped returns the path of the file that marks that the program of start number n was told to
// stop, and has saved. A launcher creates it for a rank that it has told itself, and the trainer
// for ranks that learn of it from others.
func (d Dir) Stopped(n string) string { return d.join("stopped-" + n) }

// Spec returns the path of the file with the job as it was submitted, which "submit resume" starts
// again.
func (d Dir) Spec() string { return d.join("job.json") }

// CellCheckpoints returns the path of the folder of a cell's checkpoints.
func (d Dir) CellCheckpoints(cell string) string { return filepath.Join(d.Checkpoints(), cell) }

// HasCheckpoints reports whether a cell has saved a checkpoint. A folder alone means nothing: a
// trainer creates its folder before it trains, and sets aside what it must not resume from.
func HasCheckpoints(d Dir, cell string) bool {
	entries, _ := os.ReadDir(d.CellCheckpoints(cell)) // If the folder can't be read, it has none.
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		_, err := os.Stat(filepath.Join(d.CellCheckpoints(cell), e.Name(), CheckpointFile))
		return err == nil && !strings.HasPrefix(e.Name(), ".")
	})
}

// Trained returns the path of the folder of marks for the cells that have trained.
func (d Dir) Trained() string { return d.join("trained") }

// MarkTrained records that a cell trains.
func MarkTrained(d Dir, cell string) error {
	if err := os.Mkdir(d.Trained(), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("record that cell %s trains: %w", cell, err)
	}
	return WriteFileAtomic(filepath.Join(d.Trained(), cell), nil, 0o666)
}

// HasTrained reports whether a cell has trained in an earlier start.
func HasTrained(d Dir, cell string) bool {
	_, err := os.Stat(filepath.Join(d.Trained(), cell))
	return err == nil
}

// CountStarts returns the number of the run's starts.
func CountStarts(d Dir) (int, error) {
	text, err := ReadFile(d.Starts())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("starts of run %s: %w", d.Name(), err)
	}
	return strings.Count(string(text), "\n"), nil
}

// AddStart records a start with its word, and returns its number: 1 for the first.
func AddStart(d Dir, word string) (number int, err error) {
	if err := appendLine(d.Starts(), word); err != nil {
		return 0, fmt.Errorf("start of run %s: %w", d.Name(), err)
	}
	return CountStarts(d)
}

// IsFinished reports whether a cell succeeded in an earlier start.
func IsFinished(d Dir, cell string) bool {
	_, err := os.Stat(d.finishedCell(cell))
	return err == nil
}

// MarkFinished records that a cell ended well, in start number n.
func MarkFinished(d Dir, cell string, n int) error {
	// Create only this folder: a run directory that somebody has removed must not come back.
	if err := os.Mkdir(d.Finished(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("record the end of cell %s: %w", cell, err)
	}
	return WriteFileAtomic(d.finishedCell(cell), fmt.Appendln(nil, n), 0o600)
}

// Reopen forgets that a cell ended well, so that the next start runs it again.
func Reopen(d Dir, cell string) error {
	if err := remove(d.finishedCell(cell)); err != nil {
		return fmt.Errorf("run cell %s again: %w", cell, err)
	}
	return nil
}

// FinishedCells returns the names of the cells that ended well, sorted.
func FinishedCells(d Dir) ([]string, error) {
	entries, err := os.ReadDir(d.Finished())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finished cells of run %s: %w", d.Name(), err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, ".") }), nil
}
