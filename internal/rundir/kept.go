package rundir

import (
	"fmt"
	"path/filepath"
)

// Kept is the folder of the values that %keep keeps from one cell to the next. Each rank has its
// own.
func (d Dir) Kept() string { return d.join("kept") }

// KeptAfter is the folder of the values as a cell has left them: a later run may begin after that
// cell.
func (d Dir) KeptAfter(cell string) string { return filepath.Join(d.Kept(), "after", cell) }

// KeptValue is the file, in a folder of kept values, of a variable as a rank has it.
func KeptValue(folder, variable string, rank int) string {
	if rank > 0 {
		variable += fmt.Sprintf(".rank-%d", rank)
	}
	return filepath.Join(folder, variable+".gob")
}
