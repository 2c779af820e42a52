package rundir

import (
	"fmt"
	"path/filepath"
)

// Kept is the folder of the values that %keep keeps from one step to the next. Each rank has its
// own.
func (d Dir) Kept() string { return d.join("kept") }

// KeptAfter is the folder of the values as a step has left them: a later run may begin after that
// step.
func (d Dir) KeptAfter(step string) string { return filepath.Join(d.Kept(), "after", step) }

// KeptValue is the file, in a folder of kept values, of a variable as a rank has it.
func KeptValue(folder, variable string, rank int) string {
	if rank > 0 {
		variable += fmt.Sprintf(".rank-%d", rank)
	}
	return filepath.Join(folder, variable+".gob")
}
