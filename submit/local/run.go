package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// Runner runs the programs of jobs.
type Runner struct {
	// Out receives rank 0's output, Err mpirun's own messages.
	Out, Err io.Writer
	// Environ is the base of the programs' environment; nil is this process's.
	Environ []string
	// LookPath finds mpirun; nil is exec.LookPath.
	LookPath func(string) (string, error)
	// Drain, if set, returns once all output of a cell is in its log; through a recorder it arrives
	// late.
	Drain func()
	// Locate, if set, adds the place in the notebook where a rank failed to an error.
	Locate func(*submit.JobError)
}

// Run runs the cells of spec, whose programs are in spec.RunDir, one after another, except those
// that an earlier Run has finished. It blocks until all have ended or one has failed, which gives a
// *submit.JobError. When ctx ends, it tells the running cell to save and stop; if the cell has
// saved, the error is a *submit.JobError with the state submit.Stopped.
func (r Runner) Run(ctx context.Context, spec submit.JobSpec) error {
	out := &screen{out: r.Out}
	r.Out = out
	start, err := r.start(ctx, spec)
	if err != nil {
		return err
	}
	for _, cell := range spec.Cells {
		if rundir.IsFinished(spec.RunDir, cell.Name) {
			fmt.Fprintf(r.Err, "cell %s succeeded in an earlier start\n", cell.Name)
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := start.untilDone(ctx, cell); err != nil {
			return err
		}
	}
	if out.err != nil {
		start.warnUnshown(out.err)
	}
	return nil
}

// start is one start of a run.
type start struct {
	Runner
	spec   submit.JobSpec
	number int
	// restarts counts the restarts since Run was called.
	restarts int
	mpi      mpirun
}

// start prepares a start and records it.
func (r Runner) start(ctx context.Context, spec submit.JobSpec) (s start, err error) {
	s = start{Runner: r, spec: spec}
	if spec.Tasks() > 1 {
		if s.mpi, err = r.findMPIRun(ctx); err != nil {
			return s, err
		}
	}
	return s, s.record()
}

// record records a start and prepares its files.
func (s *start) record() (err error) {
	if err := rundir.ClearFailure(s.spec.RunDir); err != nil {
		return err
	}
	if s.number, err = rundir.AddStart(s.spec.RunDir, "local "+time.Now().Format(time.RFC3339)); err != nil {
		return err
	}
	if err := rundir.NoteLogs(s.spec.RunDir); err != nil {
		return err
	}
	if s.spec.Tasks() > 1 {
		err = s.writeLauncher()
	}
	return err
}

// cell runs a cell to its end and records its success.
func (s *start) cell(ctx context.Context, cell rundir.Cell) error {
	if err := rundir.ClearProgress(s.spec.RunDir); err != nil {
		return err
	}
	launch := s.ranks
	if cell.Once || s.spec.Tasks() == 1 {
		launch = s.direct
	}
	code, err := launch(ctx, cell)
	stopped := s.takeStopped()
	switch {
	case err == nil && code == 0 && !cell.Once && stopped:
		code = rundir.RequeueCode
	case code == rundir.RequeueCode && (cell.Once || !stopped && ctx.Err() == nil):
		fmt.Fprintln(s.Err, rundir.Unasked)
		code = 1
	}
	switch {
	case err != nil:
		return fmt.Errorf("cell %s: %w", cell.Name, err)
	case code == 0:
		return rundir.MarkFinished(s.spec.RunDir, cell.Name, s.number)
	case code == rundir.RequeueCode:
		return submit.NewJobError(submit.Job{Dir: s.spec.RunDir}, submit.Status{State: submit.Stopped, ExitCode: code})
	case ctx.Err() != nil:
		return fmt.Errorf("cell %s: %w", cell.Name, context.Cause(ctx))
	}
	return s.failed(code)
}

// takeStopped reports whether a rank has left the file that says that it was told to stop and has
// saved, and removes that file.
func (s *start) takeStopped() bool { return os.Remove(s.stoppedFile()) == nil }

// direct runs a cell as one process: the only rank, or a shell command. Its output is appended to
// rank 0's log and shown. The process writes the log itself, so that its output doesn't end it if
// this process has been killed.
func (s *start) direct(ctx context.Context, cell rundir.Cell) (code int, err error) {
	spec := s.spec
	if err := checkWorkDir(spec, cell); err != nil {
		return 0, err
	}
	log, err := os.OpenFile(spec.RunDir.RankLog(0), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close() //nolint:errcheck // the program that writes it has its own handle
	command := spec.Command(cell)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = slices.Concat(cluster.Alone(s.environ()), s.ownEnv(cell.Name), userEnv(spec, cell))
	cmd.Dir = workDir(spec, cell)
	cmd.Stdout, cmd.Stderr = log, log
	defer s.warnFull(log)
	return s.showing(func() (int, error) { return runGroup(ctx, cmd, terminate, log) })
}

// warnFull warns that a log may lack output if its disk is full. The programs keep running and lose
// their output.
func (s *start) warnFull(log *os.File) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(log.Name(), &disk); err == nil && disk.Bavail == 0 {
		fmt.Fprintf(s.Err, "warning: a part of the output is in no log: the disk of %s is full\n", log.Name())
	}
}

// showing shows new text of rank 0's log while run runs.
func (s *start) showing(run func() (int, error)) (int, error) {
	tail, err := newLogTail(s.spec.RunDir.RankLog(0), s.Out)
	if err != nil {
		return 0, err
	}
	stop := tail.start()
	code, err := run()
	if s.Drain != nil {
		s.Drain()
	}
	if tailErr := stop(); tailErr != nil {
		s.warnUnshown(tailErr)
	}
	return code, err
}

// warnUnshown warns that output was not shown. That changes nothing about how the run ended.
func (s *start) warnUnshown(why error) {
	fmt.Fprintf(s.Err, "warning: some of rank 0's output was not shown: %v; all of it is in %s\n", why, s.spec.RunDir.RankLog(0))
}

// logInterval is the time between two reads of rank 0's log.
const logInterval = 100 * time.Millisecond

// ranks runs a cell on several ranks. Every rank appends to its own log; rank 0's is shown as it
// grows.
func (s *start) ranks(ctx context.Context, cell rundir.Cell) (int, error) {
	if err := checkWorkDir(s.spec, cell); err != nil {
		return 0, err
	}
	launch := s.throughMPI
	if s.mpi == (mpirun{}) {
		launch = s.overTCP
	}
	return s.showing(func() (int, error) { return launch(ctx, cell) })
}

// throughMPI starts the ranks of a cell by mpirun, and returns its exit code.
func (s *start) throughMPI(ctx context.Context, cell rundir.Cell) (int, error) {
	spec := s.spec
	out, err := s.openMessages()
	if err != nil {
		return 0, err
	}
	defer out.close(s.Err)
	cmd := exec.Command(s.mpi.path, s.mpi.args(spec.Tasks(), spec.RunDir.Launcher(), cell.Name)...)
	cmd.Env = submit.CleanEnviron(s.environ()) // In a job, mpirun would start its ranks as a step of that job, and wait for CPUs.
	cmd.Stdout, cmd.Stderr = out, out
	return runGroup(ctx, cmd, tellLauncher, nil) // Its launchers end their ranks.
}

func (r Runner) environ() []string {
	if r.Environ != nil {
		return slices.Clone(r.Environ)
	}
	return os.Environ()
}

// workDir returns the cell's directory; a relative one is below the job's.
func workDir(spec submit.JobSpec, cell rundir.Cell) string {
	if cell.Dir == "" || filepath.IsAbs(cell.Dir) {
		return firstOf(cell.Dir, spec.WorkDir)
	}
	return filepath.Join(spec.WorkDir, cell.Dir)
}

// checkWorkDir refuses a cell whose directory is missing: the notebook's own, or one to which the
// notebook changes.
func checkWorkDir(spec submit.JobSpec, cell rundir.Cell) error {
	dir := workDir(spec, cell)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if cell.Dir == "" || filepath.Clean(dir) == filepath.Clean(spec.WorkDir) {
		return fmt.Errorf("the notebook's folder %s is gone, and the programs run there; put it back and resume the run with: %s", dir, submit.ResumeCommand(spec.RunDir))
	}
	return fmt.Errorf("its folder %s does not exist; correct the notebook's %%cd, or create the folder with a line !mkdir -p above it", dir)
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// lastSignal is the last of Linux's signals. A program that exits with 255 has ended by none.
const lastSignal = 64

// failed returns the error for a program that ended with a code.
func (s *start) failed(code int) error {
	status := submit.Status{State: submit.Failed, ExitCode: code}
	if signal := code - 128; signal > 0 && signal <= lastSignal {
		status.ExitCode, status.Signal = 0, signal
	}
	status.FailedRank = failedRank(s.spec)
	err := submit.NewJobError(submit.Job{Dir: s.spec.RunDir}, status)
	if s.Locate != nil {
		s.Locate(err)
	}
	return err
}
