package slurm

import (
	"errors"
	"os/exec"
	"sync"
	"sync/atomic"

	"gonbatch/submit"
)

// Name is this scheduler's name in manifests.
const Name = "slurm"

// Scheduler runs jobs by SLURM.
type Scheduler struct {
	runner submit.Runner

	mu sync.Mutex
	// cluster is the name of this machine's cluster, once it is known.
	cluster *string
	// unreachable are the other clusters that could not be asked, and why.
	unreachable map[string]error
	// noAccounting is set once sacct has failed.
	noAccounting atomic.Bool
}

var _ submit.Scheduler = (*Scheduler)(nil)

// New returns a Scheduler whose commands are run by runner.
func New(runner submit.Runner) *Scheduler {
	return &Scheduler{runner: runner, unreachable: map[string]error{}}
}

// ErrNoSLURM says that this machine has no SLURM commands.
var ErrNoSLURM = errors.New("cannot queue the job: sbatch is not on PATH; run submit on a login node of a SLURM cluster, or run the notebook on this machine with --local")

// Available tells, as ErrNoSLURM, that sbatch is not on PATH.
func Available() error {
	if _, err := exec.LookPath("sbatch"); err != nil {
		return ErrNoSLURM
	}
	return nil
}
