package distributed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gonbatch/distributed/watch"
	"gonbatch/internal/rundir"
)

// noteAfter is how long a rank waits for the others to start before it prints a note.
const noteAfter = 30 * time.Second

// lastWord is how much longer a rank that gives up waits for an error from the communicator: TCP
// may know which ranks are missing, MPI reports nothing.
const lastWord = 5 * time.Second

// gather connects the ranks and starts to watch them. MPI_Init waits forever for a missing rank,
// and the watch doesn't run yet, so this rank gives up after the time limit for stuck ranks. A
// hanging call stays in the background until the process ends.
func (w *World) gather(ctx context.Context, c Config) error {
	stuck, err := stuckTimeout(c.Getenv)
	if err != nil {
		return err
	}
	if err := w.forgetFailure(); err != nil {
		return err
	}
	limit := stuck
	if limit == 0 || w.Size() == 1 {
		limit = never
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLate)
	defer cancel()
	met := make(chan meeting, 1)
	go func() { met <- w.meet(ctx, c, stuck) }()
	m, ok := w.await(ctx, met, c)
	if !ok {
		m.err = w.tooLong(context.Cause(ctx), limit)
	}
	if m.err != nil && errors.Is(context.Cause(ctx), errLate) {
		return w.giveUp(m.err)
	}
	w.peers, w.watch = m.peers, m.watch
	return m.err
}

const never = 10 * 365 * 24 * time.Hour

var errLate = errors.New("too late")

// meeting is the result of meet.
type meeting struct {
	peers communicator
	watch *watch.Watch
	err   error
}

func (w *World) meet(ctx context.Context, c Config, stuck time.Duration) (m meeting) {
	if m.peers, m.err = connect(ctx, w.environment, c.Getenv); m.err != nil {
		return m
	}
	if m.watch, m.err = w.startWatch(ctx, c, m.peers, stuck); m.err == nil {
		m.peers = watched{m.peers, m.watch}
	}
	return m
}

// await waits for the meeting, and prints a note if that takes long. It reports false if the
// context ends first.
func (w *World) await(ctx context.Context, met <-chan meeting, c Config) (m meeting, ok bool) {
	note := time.AfterFunc(noteAfter, func() {
		fmt.Fprintf(c.Log, "gonbatch: %s has waited %v for the other ranks to start\n", w.who(), noteAfter)
	})
	defer note.Stop()
	select {
	case m = <-met:
		return m, true
	case <-ctx.Done():
	}
	select {
	case m = <-met:
		return m, true
	case <-time.After(lastWord):
		return m, false
	}
}

// forgetFailure removes the record of the failure that ended an earlier start of the job.
func (w *World) forgetFailure() error {
	if w.Rank() != 0 || w.run == (rundir.Dir{}) {
		return nil
	}
	return rundir.ClearFailure(w.run)
}

// tooLong returns the error of a rank that gives up, if the communicator has returned none.
func (w *World) tooLong(cause error, limit time.Duration) error {
	if !errors.Is(cause, errLate) {
		return fmt.Errorf("%s was waiting for the other ranks to start: %w", w.who(), cause)
	}
	return fmt.Errorf("%s has waited %v for the other ranks to start and gives up: at least one of the %d has died, was never started, or can't reach the others. "+
		"The log of each rank that waited ends with this message: look at the other logs. If your ranks need longer to start, set %s to more than %v",
		w.who(), limit, w.Size(), rundir.EnvStuckTimeout, limit)
}

// giveUp records in the run directory why this rank gives up, because there is no watch to do it.
func (w *World) giveUp(err error) error {
	if w.run == (rundir.Dir{}) {
		return err
	}
	f := rundir.Failure{Kind: rundir.Stuck, Rank: w.Rank(), Host: hostname(), Error: err.Error(), Time: time.Now(), ExitCode: 1}
	if _, e := f.Write(w.run); e != nil {
		err = errors.Join(err, e)
	}
	return err
}

func (w *World) who() string {
	return fmt.Sprintf("rank %d of %d on %s", w.Rank(), w.Size(), hostname())
}
