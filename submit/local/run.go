package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/job"
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
	out := &lossy{out: r.Out}
	r.Out = out
	s := &start{Runner: r, ctx: ctx, spec: spec, stops: make(chan job.Stop, 2)}
	if spec.Tasks() > 1 {
		var err error
		if s.mpi, err = r.findMPIRun(ctx); err != nil {
			return err
		}
	}
	defer context.AfterFunc(ctx, s.stop)()
	s.job = &job.Job{Spec: spec, Launcher: s, Scheduler: s, Log: r.Err, Now: time.Now, Signals: s.stops, Restarts: func() {
		fmt.Fprintln(r.Err, s.failed(1))
	}}
	err := s.result(s.job.Run())
	if err == nil && out.err != nil && !errors.Is(out.err, syscall.EPIPE) {
		s.warnUnshown(out.err)
	}
	return err
}

// start is a run of a job in this process. It is the job's launcher, and in place of a scheduler.
type start struct {
	Runner
	ctx  context.Context //nolint:containedctx // of Run
	spec submit.JobSpec
	job  *job.Job
	mpi  mpirun
	// stops gets one event once ctx has ended.
	stops chan job.Stop
	once  sync.Once
	// code is the exit code of the last launcher.
	code int
}

// stop tells the job that ctx has ended.
func (s *start) stop() { s.once.Do(func() { s.stops <- job.Stop{} }) }

// result returns the error for a job's exit code.
func (s *start) result(code int) error {
	switch {
	case code == 0:
		return nil
	case code == rundir.RequeueCode:
		if !s.job.Saved() {
			return context.Cause(s.ctx) // It was told to stop between two cells.
		}
		return submit.NewJobError(submit.Job{Dir: s.spec.RunDir}, submit.Status{State: submit.Stopped, ExitCode: code})
	case s.job.Err() != nil:
		return s.job.Err()
	case s.ctx.Err() != nil:
		return fmt.Errorf("cell %s: %w", s.job.Cell(), context.Cause(s.ctx))
	}
	return s.failed(code)
}

// A job on this machine has no scheduler: nobody ends it but the user, and nobody starts it again.
// The run's lock keeps other jobs away.

func (s *start) Name() string               { return "" }
func (s *start) Job() string                { return "" }
func (s *start) Nodes() string              { return "" }
func (s *start) Restarts() int              { return 0 }
func (s *start) Requeue() error             { return errors.ErrUnsupported }
func (s *start) Word() job.Word             { return job.Word{State: "RUNNING"} }
func (s *start) Other(rundir.Dir) job.Other { return job.Other{} }
func (s *start) Line(now time.Time) string  { return "local " + now.Format(time.RFC3339) }

// Launch starts the ranks of a cell.
func (s *start) Launch(cell rundir.Cell, number int) (job.Ranks, error) {
	return ranks{start: s, cell: cell, number: number}, nil
}

// ranks are the ranks of a cell in a start of the run.
type ranks struct {
	*start
	cell   rundir.Cell
	number int
	out    *messages
}

// Tell does nothing: the launcher sees by itself that ctx has ended, and the user may interrupt it
// again.
func (r ranks) Tell() {}

// Wait runs the ranks to their end.
func (r ranks) Wait() (code int, err error) {
	r.code, err = r.launch()
	if r.ctx.Err() != nil {
		r.stop() // Before the job judges the end.
	}
	return r.code, err
}

// launch runs the ranks and returns the launcher's exit code. Every rank appends to its own log;
// rank 0's is shown as it grows.
func (r ranks) launch() (code int, err error) {
	if r.out, err = r.openMessages(); err != nil {
		return 0, err
	}
	defer r.out.close(r.Err)
	defer r.warnFull()
	launch := r.throughMPI
	switch {
	case r.spec.TasksOf(r.cell) == 1:
		launch = r.direct
	case r.mpi == (mpirun{}):
		launch = r.overTCP
	}
	return r.showing(launch)
}

// run runs a launcher, or a rank, in its own process group, with the given environment. If this
// process dies, each rank ends its program.
func (r ranks) run(ctx context.Context, command, environ []string) (int, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = slices.Concat(environ, r.ownEnv(r.cell.Name, r.number), r.userEnv())
	cmd.Stdout, cmd.Stderr = r.out, r.out
	return runGroup(ctx, cmd)
}

// rank is the command that runs a rank.
func (r ranks) rank() []string { return r.spec.RankCommand(r.cell, false) }

// direct runs one process: the only rank, or a shell command.
func (r ranks) direct() (int, error) {
	return r.run(r.ctx, r.rank(), cluster.Alone(r.environ()))
}

// throughMPI starts the ranks by mpirun. In a job, it would start them as a step of that job, and
// wait for CPUs.
func (r ranks) throughMPI() (int, error) {
	return r.run(r.ctx, r.mpi.command(r.spec.Tasks(), r.rank()), submit.CleanEnviron(r.environ()))
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
	log := submit.NewTail(s.spec.RunDir.RankLog(0))
	if _, err := log.Copy(io.Discard); err != nil { // Earlier cells have shown it.
		return 0, err
	}
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.show(log, end) }()
	code, err := run()
	if s.Drain != nil {
		s.Drain()
	}
	close(end)
	if err := <-ended; err != nil {
		s.warnUnshown(err)
	}
	return code, err
}

// show shows a log as it grows, until end is closed.
func (s *start) show(log *submit.Tail, end <-chan struct{}) error {
	for last := false; ; {
		if _, err := log.Copy(s.Out); err != nil || last {
			return err
		}
		select {
		case <-end:
			last = true
		case <-time.After(logInterval):
		}
	}
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

// lastSignal is the last of Linux's signals. A program that exits with 255 has ended by none.
const lastSignal = 64

// failed returns the error for the cell that ran last: with the code of the rank that failed first,
// the launcher's, or the job's.
func (s *start) failed(code int) error {
	status := submit.Status{State: submit.Failed, ExitCode: cmp.Or(s.code, code)}
	ends := s.job.Ends()
	if first, ok := rundir.FirstFailed(ends); ok && !first.Told {
		status.ExitCode, status.FailedRank = first.Code, first.Rank
	} else if len(ends) > 0 { // A rank without a record was killed together with its program.
		for _, recorded := ends[status.FailedRank]; recorded && status.FailedRank < s.spec.Tasks(); _, recorded = ends[status.FailedRank] {
			status.FailedRank++
		}
		status.FailedRank %= s.spec.Tasks()
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
