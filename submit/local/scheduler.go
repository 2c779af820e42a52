package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"gonbatch/internal/plugin"
	"gonbatch/internal/plural"
	"gonbatch/internal/quota"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/executed"
	"gonbatch/submit/notify"
)

// Name is this scheduler's name in manifests.
const Name = "local"

// Scheduler runs jobs on this machine, in the process that submits them.
type Scheduler struct {
	runner Runner
	// gpus returns the number of GPUs that programs find on this machine.
	gpus  func() int
	shell submit.Shell

	// jobs holds functions that end the jobs in this process, by run directory.
	jobs sync.Map
}

var _ submit.Foreground = (*Scheduler)(nil)

// New returns a Scheduler. It calls locate for the error of a failed rank, to add the place in the
// notebook; locate may be nil.
func New(shell submit.Shell, locate func(*submit.JobError)) *Scheduler {
	return &Scheduler{
		runner: Runner{Out: shell.Out, Err: shell.Err, Environ: shell.Environ, Locate: locate},
		gpus:   gpus, shell: shell,
	}
}

// Name is this scheduler's name in manifests.
func (s *Scheduler) Name() string { return Name }

// Platform returns cuda on a machine that has a GPU for each rank. More ranks than GPUs train on
// CPUs.
func (s *Scheduler) Platform(spec submit.JobSpec) string {
	switch n := s.gpus(); {
	case n == 0:
		return ""
	case spec.Tasks() > n:
		return plugin.CPU
	}
	return plugin.CUDA
}

// gpus returns the number of GPUs that NVIDIA's driver has found on this machine.
func gpus() int {
	found, _ := filepath.Glob("/dev/nvidia[0-9]*") // The pattern is well formed.
	if _, err := os.Stat("/dev/nvidiactl"); err != nil {
		return 0
	}
	return len(found)
}

// maxRanks is the number of ranks per CPU above which this machine would stand still.
const maxRanks = 64

// Validate refuses far more ranks than this machine has CPUs. Options for clusters have no effect
// here.
func (s *Scheduler) Validate(spec submit.JobSpec) error {
	if most := maxRanks * runtime.NumCPU(); spec.Tasks() > most {
		return fmt.Errorf("--tasks=%d: this machine has %s, and runs at most %s", spec.Tasks(), plural.Of(runtime.NumCPU(), "CPU"), plural.Of(most, "rank"))
	}
	return nil
}

// Prepare returns spec unchanged: ranks find each other through mpirun. It warns about ranks that
// share CPUs.
func (s *Scheduler) Prepare(_ context.Context, spec submit.JobSpec, _ bool) (submit.JobSpec, error) {
	cpus, err := quota.NumCPU()
	if err != nil {
		s.shell.Warn("%v", err)
	}
	if spec.Tasks() > cpus && cmp.Or(spec.Platform, s.Platform(spec)) != plugin.CUDA {
		s.shell.Warn("--tasks=%d: %s for all ranks, which compute in turn: %s would train at least as fast",
			spec.Tasks(), plural.Of(cpus, "CPU"), plural.Of(cpus, "rank"))
	}
	return spec, nil
}

// Submit accepts the job for this process.
func (s *Scheduler) Submit(_ context.Context, spec submit.JobSpec) (submit.Job, error) {
	process, err := rundir.ThisProcess()
	return submit.Job{Dir: spec.RunDir, Process: &process}, err
}

// Run runs the job's programs and records their output. It also runs a job that cannot be recorded.
func (s *Scheduler) Run(ctx context.Context, spec submit.JobSpec) (submit.Status, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.jobs.Store(spec.RunDir, cancel)
	defer s.jobs.Delete(spec.RunDir)
	runner := s.runner
	recording, err := s.record(spec, &runner)
	if err != nil {
		s.shell.Warn("%v", err)
	}
	ended := notify.Begin(s.shell, spec, "")
	err = runner.Run(ctx, spec)
	status := statusOf(err)
	ended(codeOf(status))
	if recording != nil {
		if err := recording.End(executed.OutcomeOf(status, spec.RunDir)); err != nil {
			s.shell.Warn("%v", err)
		}
	}
	return status, err
}

// record starts the recorder of a job's output, if the job is recorded, and connects the runner to
// it.
func (s *Scheduler) record(spec submit.JobSpec, runner *Runner) (*executed.Recording, error) {
	if !spec.Record {
		return nil, nil
	}
	recording, err := executed.Record(s.shell, spec.RunDir, "")
	if err != nil {
		return nil, err
	}
	runner.Environ = append(slices.Clone(runner.environ()), rundir.EnvRecorder+"="+recording.Socket())
	runner.Drain = recording.Drain
	return recording, nil
}

// codeOf returns a job's exit code from its status.
func codeOf(status submit.Status) int {
	switch {
	case status.State == submit.Completed:
		return 0
	case status.Signal > 0:
		return 128 + status.Signal
	}
	return cmp.Or(status.ExitCode, 1)
}

// statusOf returns a job's status at its end, from the error of its Run.
func statusOf(err error) submit.Status {
	var job *submit.JobError
	var interrupt submit.Interrupt
	switch {
	case err == nil:
		return submit.Status{State: submit.Completed}
	case errors.As(err, &interrupt):
		return submit.Status{State: submit.Cancelled, Reason: interrupt.Error(), ExitCode: interrupt.ExitCode()}
	case errors.As(err, &job):
		return job.Status
	}
	reason, _, _ := strings.Cut(err.Error(), "\n")
	return submit.Status{State: submit.Failed, Reason: reason}
}

// Status returns the manifest's status, unless the process that should record the job's end is
// gone.
func (s *Scheduler) Status(_ context.Context, job submit.Job) (submit.Status, error) {
	m, err := rundir.ReadManifest(job.Dir)
	if err == nil && abandoned(m) {
		m, err = rundir.ReadManifest(job.Dir) // It may have ended normally between the two checks.
	}
	if err != nil {
		return submit.Status{}, fmt.Errorf("status of run %s: %w", job.Dir.Name(), err)
	}
	if abandoned(m) {
		return submit.Status{State: submit.Lost, Reason: fmt.Sprintf("the submit command that ran it (process %d on %s) is gone", m.Process.PID, m.Process.Host)}, nil
	}
	return submit.RecordedStatus(m), nil
}

// abandoned reports whether no process is left to record the run's end.
func abandoned(m rundir.Manifest) bool {
	return m.Process != nil && !submit.State(m.State).Ended() && m.Process.Gone()
}

// Cancel tells the job to save and stop, through the process that runs it, which records how it
// ends.
func (s *Scheduler) Cancel(_ context.Context, job submit.Job) error {
	if cancel, here := s.jobs.Load(job.Dir); here {
		cancel.(context.CancelCauseFunc)(submit.Interrupt{Signal: syscall.SIGTERM})
		return nil
	}
	if job.Process == nil {
		return nil
	}
	if err := job.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("cancel %s: %w", job, err)
	}
	return nil
}
