package rundir

import "path/filepath"

// Kept is the folder of the values that %keep keeps from one step to the next. Each rank has its
// own.
func (d Dir) Kept() string { return d.join("kept") }

// KeptAfter is the folder of the values as a step has left them: a later run may begin behind that
// step.
func (d Dir) KeptAfter(step string) string { return filepath.Join(d.Kept(), "after", step) }
