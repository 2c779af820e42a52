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
	"gonbatch/submit/rank"
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
	return rundir.NoteLogs(s.spec.RunDir)
}

// cell runs a cell to its end and records its success.
func (s *start) cell(ctx context.Context, cell rundir.Cell) error {
	if err := rundir.ClearProgress(s.spec.RunDir); err != nil {
		return err
	}
	code, err := s.launch(ctx, cell)
	var ends map[int]rundir.End
	if err == nil {
		ends, err = rundir.ReadEnds(s.spec.RunDir, s.number, cell.Name)
	}
	stopped := s.takeStopped()
	switch {
	case err != nil:
		return fmt.Errorf("cell %s: %w", cell.Name, err)
	case code == 0 && stopped && !cell.Once:
		return submit.NewJobError(submit.Job{Dir: s.spec.RunDir}, submit.Status{State: submit.Stopped, ExitCode: rundir.RequeueCode})
	case code == 0:
		if err := s.all(cell, ends); err != nil {
			return err
		}
		return rundir.MarkFinished(s.spec.RunDir, cell.Name, s.number)
	case ctx.Err() != nil:
		return fmt.Errorf("cell %s: %w", cell.Name, context.Cause(ctx))
	}
	return s.failed(code, ends)
}

// all returns an error unless all ranks of a cell say that they have ended well: a launcher alone
// is not believed.
func (s *start) all(cell rundir.Cell, ends map[int]rundir.End) error {
	for rank := range s.tasks(cell) {
		if end, ok := ends[rank]; !ok || end.Code != 0 {
			return fmt.Errorf("cell %s: rank %d has left no word that it ended well, though its launcher says so; see %s", cell.Name, rank, s.spec.RunDir.SchedulerLog())
		}
	}
	return nil
}

// tasks returns the number of a cell's ranks.
func (s *start) tasks(cell rundir.Cell) int {
	if cell.Once {
		return 1
	}
	return s.spec.Tasks()
}

// takeStopped reports whether a rank has left the file that says that it was told to stop and has
// saved, and removes that file.
func (s *start) takeStopped() bool { return os.Remove(s.stoppedFile()) == nil }

// launch runs a cell's ranks and returns the launcher's exit code. Every rank appends to its own
// log; rank 0's is shown as it grows.
func (s *start) launch(ctx context.Context, cell rundir.Cell) (code int, err error) {
	if err := checkWorkDir(s.spec, cell); err != nil {
		return 0, err
	}
	out, err := s.openMessages()
	if err != nil {
		return 0, err
	}
	defer out.close(s.Err)
	defer s.warnFull()
	launch := s.throughMPI
	switch {
	case s.tasks(cell) == 1:
		launch = s.direct
	case s.mpi == (mpirun{}):
		launch = s.overTCP
	}
	return s.showing(func() (int, error) { return launch(ctx, cell, out) })
}

// rankCommand returns the command that runs one rank of a cell.
func (s *start) rankCommand(cell rundir.Cell) []string {
	return []string{s.spec.RunDir.Submit(), rank.Name, s.spec.RunDir.Path(), cell.Name}
}

// run runs a launcher, or a rank, in its own process group, with the given environment. If this
// process dies, each rank ends its program.
func (s *start) run(ctx context.Context, command, environ []string, cell rundir.Cell, out io.Writer) (int, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = slices.Concat(environ, s.ownEnv(cell.Name), s.userEnv())
	cmd.Stdout, cmd.Stderr = out, out
	return runGroup(ctx, cmd)
}

// direct runs a cell as one process: the only rank, or a shell command.
func (s *start) direct(ctx context.Context, cell rundir.Cell, out *messages) (int, error) {
	return s.run(ctx, s.rankCommand(cell), cluster.Alone(s.environ()), cell, out)
}

// throughMPI starts the ranks of a cell by mpirun. In a job, it would start them as a step of that
// job, and wait for CPUs.
func (s *start) throughMPI(ctx context.Context, cell rundir.Cell, out *messages) (int, error) {
	return s.run(ctx, s.mpi.command(s.spec.Tasks(), s.rankCommand(cell)), submit.CleanEnviron(s.environ()), cell, out)
}

// warnFull warns that a log may lack output if its disk is full. The programs keep running and lose
// their output.
func (s *start) warnFull() {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(s.spec.RunDir.Logs(), &disk); err == nil && disk.Bavail == 0 {
		fmt.Fprintf(s.Err, "warning: a part of the output is in no log: the disk of %s is full\n", s.spec.RunDir.RankLog(0))
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

func (r Runner) environ() []string {
	if r.Environ != nil {
		return slices.Clone(r.Environ)
	}
	return os.Environ()
}

// checkWorkDir refuses a cell whose directory is missing: the notebook's own, or one to which the
// notebook changes.
func checkWorkDir(spec submit.JobSpec, cell rundir.Cell) error {
	dir := spec.Dir(cell)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if cell.Dir == "" || filepath.Clean(dir) == filepath.Clean(spec.WorkDir) {
		return fmt.Errorf("the notebook's folder %s is gone, and the programs run there; put it back and resume the run with: %s", dir, submit.ResumeCommand(spec.RunDir))
	}
	return fmt.Errorf("its folder %s does not exist; correct the notebook's %%cd, or create the folder with a line !mkdir -p above it", dir)
}

// lastSignal is the last of Linux's signals. A program that exits with 255 has ended by none.
const lastSignal = 64

// failed returns the error for a cell whose launcher ended with a code: the code of the rank that
// failed first, if it is known.
func (s *start) failed(code int, ends map[int]rundir.End) error {
	status := submit.Status{State: submit.Failed, ExitCode: code}
	if first, ok := rundir.FirstFailed(ends); ok {
		status.ExitCode, status.FailedRank = first.Code, first.Rank
	}
	if signal := status.ExitCode - 128; signal > 0 && signal <= lastSignal {
		status.ExitCode, status.Signal = 0, signal
	}
	err := submit.NewJobError(submit.Job{Dir: s.spec.RunDir}, status)
	if s.Locate != nil {
		s.Locate(err)
	}
	return err
}
