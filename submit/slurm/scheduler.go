package slurm

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"

	"gonbatch/internal/plugin"
	"gonbatch/slurmtmpl"
	"gonbatch/submit"
	"gonbatch/submit/loader"
)

// name is this scheduler's name in manifests.
const name = "slurm"

// Scheduler runs jobs through SLURM.
type Scheduler struct {
	shell  submit.Shell
	runner submit.Runner

	mu sync.Mutex
	// cluster is the name of this machine's cluster; nil until it is known.
	cluster *string
	// unreachable are the errors of the other clusters that could not be asked.
	unreachable map[string]error
	// noAccounting is set once sacct has failed.
	noAccounting atomic.Bool
}

var (
	_ submit.Batch      = (*Scheduler)(nil)
	_ submit.Surveyor   = (*Scheduler)(nil)
	_ submit.Planner    = (*Scheduler)(nil)
	_ submit.Controller = (*Scheduler)(nil)
)

// New returns a Scheduler that runs its commands with shell.Runner.
func New(shell submit.Shell) *Scheduler {
	if shell.Err == nil {
		shell.Err = io.Discard
	}
	return &Scheduler{shell: shell, runner: shell.Runner, unreachable: map[string]error{}}
}

// Name is this scheduler's name in manifests.
func (s *Scheduler) Name() string { return name }

// Platform returns cuda for a job that asks for GPUs.
func (s *Scheduler) Platform(spec submit.JobSpec) string {
	if spec.GPUs.Count > 0 {
		return plugin.CUDA
	}
	return ""
}

// Validate refuses what sbatch would refuse.
func (s *Scheduler) Validate(spec submit.JobSpec) error { return slurmtmpl.Validate(spec) }

// Prepare decides how the ranks find each other, and refuses a job whose script cannot be rendered.
// A preview on a machine without SLURM guesses, and says so.
func (s *Scheduler) Prepare(ctx context.Context, spec submit.JobSpec, preview bool) (submit.JobSpec, error) {
	if !preview {
		if err := available(); err != nil {
			return spec, err
		}
	}
	libraries := loader.New(ctx, s.runner, s.shell.Getenv)
	mpi, err := s.findMPI(ctx, spec, func(soname string) bool { return len(libraries.Find(soname)) > 0 })
	if preview && errors.Is(err, exec.ErrNotFound) {
		mpi, err = MPI{Kind: "pmix", Library: spec.MPILibrary}, nil
		s.shell.Warn("there is no srun here to ask which kinds of MPI it supports: using --mpi=%s", mpi.Kind)
	}
	if err != nil {
		return spec, err
	}
	spec.MPI, spec.MPILibrary = mpi.Kind, mpi.Library
	_, err = s.Script(spec)
	return spec, err
}

// Script returns the batch script of a prepared job.
func (s *Scheduler) Script(spec submit.JobSpec) ([]byte, error) { return slurmtmpl.Render(spec) }

// QueueCommand returns the sbatch command for the user to type. It warns about options in the
// environment that sbatch will prefer to the job's own.
func (s *Scheduler) QueueCommand(spec submit.JobSpec) string {
	for _, ignored := range ignoredOptions(s.shell.Environ) {
		name, _, _ := strings.Cut(ignored.Variable, "=")
		s.shell.Warn("sbatch will prefer %s to the job's own options: unset %s before you queue it", ignored.Variable, name)
	}
	return submitCommand(spec)
}

// errNoSLURM is the error for a machine without SLURM commands.
var errNoSLURM = errors.New("cannot queue the job: sbatch is not on PATH; run submit on a login node of a SLURM cluster, or run the notebook on this machine with --local")

// available returns ErrNoSLURM if sbatch is not on PATH.
func available() error {
	if _, err := exec.LookPath("sbatch"); err != nil {
		return errNoSLURM
	}
	return nil
}
