package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"gonbatch/rundir"
	"gonbatch/submit"
)

// Name is this scheduler's name in manifests.
const Name = "local"

// Runner runs jobs on this machine.
type Runner struct {
	// Out gets rank 0's output, Err mpirun's own messages.
	Out, Err io.Writer
	// Environ is the environment that the programs start from; nil is this process's own.
	Environ []string
	// LookPath finds a command; nil is exec.LookPath.
	LookPath func(string) (string, error)
}

// Run runs the steps of spec, whose programs lie in spec.RunDir, one after the other. It blocks until all have ended or
// one failed, which gives a *submit.JobError. When ctx ends the running step is ended too, by the signal of a
// submit.Interrupt where that is ctx's cause.
func (r Runner) Run(ctx context.Context, spec submit.JobSpec) error {
	launch, err := r.launcher(ctx, spec)
	if err != nil {
		return err
	}
	for _, step := range spec.Steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		code, err := launch(ctx, step)
		if err != nil {
			return fmt.Errorf("step %s: %w", step.Name, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("step %s: %w", step.Name, context.Cause(ctx))
		}
		if code != 0 {
			return failed(spec, code)
		}
	}
	return nil
}

// launcher prepares what starts one step and returns its exit code.
func (r Runner) launcher(ctx context.Context, spec submit.JobSpec) (func(context.Context, submit.Step) (int, error), error) {
	if spec.Tasks() == 1 {
		return func(ctx context.Context, step submit.Step) (int, error) { return r.direct(ctx, spec, step) }, nil
	}
	mpi, err := r.findMPIRun(ctx)
	if err != nil {
		return nil, err
	}
	if err := writeLauncher(spec); err != nil {
		return nil, err
	}
	return func(ctx context.Context, step submit.Step) (int, error) {
		if step.Shell {
			return r.direct(ctx, spec, step)
		}
		return r.ranks(ctx, spec, step, mpi)
	}, nil
}

// direct runs a step as one process: the only rank, or a shell command. What it prints is shown, and appended to rank 0's log.
func (r Runner) direct(ctx context.Context, spec submit.JobSpec, step submit.Step) (code int, err error) {
	log, err := os.OpenFile(spec.RunDir.RankLog(0), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd := exec.Command(step.Program(spec.RunDir), spec.StepArgs(step)...)
	cmd.Env = append(r.environ(), append(env(spec, step), rundir.EnvDir+"="+spec.RunDir.Path(), "GONBATCH_STEP="+step.Name)...)
	cmd.Dir = workDir(spec, step)
	out := io.MultiWriter(r.Out, log)
	cmd.Stdout, cmd.Stderr = out, out
	return runGroup(ctx, cmd)
}

// logInterval is the time between two looks at rank 0's log.
const logInterval = 100 * time.Millisecond

// ranks runs a step by mpirun. Every rank appends to its own log; rank 0's is shown as it grows.
func (r Runner) ranks(ctx context.Context, spec submit.JobSpec, step submit.Step, mpi mpirun) (int, error) {
	log, err := os.OpenFile(spec.RunDir.SchedulerLog(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	tail, err := newLogTail(spec.RunDir.RankLog(0), r.Out)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(mpi.path, mpi.args(spec.Tasks(), spec.RunDir.Launcher(), step.Name)...)
	cmd.Env = r.environ()
	out := io.MultiWriter(r.Err, log)
	cmd.Stdout, cmd.Stderr = out, out
	stop := tail.start()
	code, err := runGroup(ctx, cmd)
	if tailErr := stop(); err == nil && tailErr != nil {
		err = fmt.Errorf("show rank 0's log: %w", tailErr)
	}
	return code, err
}

func (r Runner) environ() []string {
	if r.Environ != nil {
		return slices.Clone(r.Environ)
	}
	return os.Environ()
}

// workDir is the step's directory, for a name that is not absolute below the job's.
func workDir(spec submit.JobSpec, step submit.Step) string {
	if step.Dir == "" || filepath.IsAbs(step.Dir) {
		return firstOf(step.Dir, spec.WorkDir)
	}
	return filepath.Join(spec.WorkDir, step.Dir)
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func failed(spec submit.JobSpec, code int) error {
	status := submit.Status{State: submit.Failed, ExitCode: code}
	if code > 128 {
		status.ExitCode, status.Signal = 0, code-128
	}
	status.FailedRank = failedRank(spec)
	return submit.NewJobError(submit.Job{Dir: spec.RunDir}, status)
}
