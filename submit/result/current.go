package result

import (
	"os"

	"gonbatch/internal/rundir"
)

// Current returns the run that this program belongs to. ok is false outside a job, such as in a
// notebook's session.
func Current() (r Run, ok bool) {
	env := rundir.ReadEnv(os.Getenv)
	return Run{dir: env.Dir}, env.InRun()
}
