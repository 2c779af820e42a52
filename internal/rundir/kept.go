package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// KeptAfter returns the path of the folder of the values of %keep as a cell has left them. Each
// rank has its own values.
func (d Dir) KeptAfter(cell string) string { return d.join(filepath.Join("kept", cell)) }

// KeptAtFirst returns the path of the folder of the values with which the first cell begins: those
// of the kernel session that submitted it. No cell has this name.
func (d Dir) KeptAtFirst() string { return d.join(filepath.Join("kept", ".session")) }

// KeptBefore returns the folder of the values with which a cell begins: those of the last cell
// before it that has ended well and kept any, or else KeptAtFirst; "" if there is none. Values kept
// by a failed start don't count.
func (d Dir) KeptBefore(cell string) (string, error) {
	names, err := d.finishedBefore(cell)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if _, err := os.Stat(d.KeptAfter(name)); err == nil {
			return d.KeptAfter(name), nil
		}
	}
	if _, err := os.Stat(d.KeptAtFirst()); err == nil {
		return d.KeptAtFirst(), nil
	}
	return "", nil
}

// KeptValue returns the path of the file, in a folder of kept values, with a rank's value of a
// variable.
func KeptValue(folder, variable string, rank int) string {
	if rank > 0 {
		variable += fmt.Sprintf(".rank-%d", rank)
	}
	return filepath.Join(folder, variable+".gob")
}

// KeptHeader is the length of the header in a file with a kept value.
const KeptHeader = 32

// KeptOpen returns the path of the file that marks a program that has not saved its variables yet,
// given the file of EnvKeepErrors.
func KeptOpen(errorsFile string) string { return errorsFile + "-open" }

// KeptOpenIn returns the path of the file that marks a rank of a cell's program that has not saved
// its variables yet.
func (d Dir) KeptOpenIn(cell string, rank int) string {
	return d.join(filepath.Join("kept", ".open", fmt.Sprintf("%s.rank-%d", cell, rank)))
}

// UnsavedBefore returns the last cell before a cell that has ended well although rank 0 did not
// save its variables; "" if a later cell before it saved them.
func (d Dir) UnsavedBefore(cell string) string {
	names, _ := d.finishedBefore(cell) // KeptBefore returns the error.
	for _, name := range names {
		if _, err := os.Stat(d.KeptOpenIn(name, 0)); err == nil {
			return name
		}
		if _, err := os.Stat(d.KeptAfter(name)); err == nil {
			return ""
		}
	}
	return ""
}

// finishedBefore returns the cells before a cell that have ended well, the last one first.
func (d Dir) finishedBefore(cell string) (names []string, err error) {
	m, err := ReadManifest(d)
	for _, c := range m.Cells {
		if c.Name == cell {
			return names, err
		}
		if IsFinished(d, c.Name) {
			names = slices.Insert(names, 0, c.Name)
		}
	}
	return nil, err
}
