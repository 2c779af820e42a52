package trainer

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"gonbatch/distributed"
)

// stopper learns that this process was told to stop, and makes all ranks stop after the same update.
type stopper struct {
	world    *distributed.World
	cause    atomic.Int32 // The first reason on this rank.
	signals  chan os.Signal
	cancel   func() bool
	next     int64 // The update after which the ranks talk next.
	lastStep int64
	lastTime time.Time
}

// Reasons to stop, in the order of their weight: the largest of the ranks' holds.
const (
	goOn int32 = iota
	timeIsUp
	interrupted // By a person: SIGINT, or the context.
	terminated  // By the scheduler: SIGUSR1, SIGTERM.
	causes
)

// agreementInterval is the time between two questions to the other ranks, about: an all-reduce of a few numbers is cheap, but not
// nothing, and a step may take less than a millisecond.
const agreementInterval = 20 * time.Millisecond

func newStopper(ctx context.Context, w *distributed.World) *stopper {
	s := &stopper{world: w, signals: make(chan os.Signal, 1), lastTime: time.Now()}
	signal.Notify(s.signals, syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for received := range s.signals {
			if received == syscall.SIGINT {
				s.tell(interrupted)
				signal.Reset(syscall.SIGINT) // A second one ends the process.
				continue
			}
			s.tell(terminated)
		}
	}()
	s.cancel = context.AfterFunc(ctx, func() { s.tell(interrupted) })
	return s
}

// tell notes a reason unless there is a weightier one.
func (s *stopper) tell(cause int32) {
	for {
		old := s.cause.Load()
		if old >= cause || s.cause.CompareAndSwap(old, cause) {
			return
		}
	}
}

func (s *stopper) close() {
	s.cancel()
	signal.Stop(s.signals)
	close(s.signals)
}

// agreed tells, after an update, why all ranks are to stop now, and whether rank 0 wants a checkpoint. It is collective, at times that all ranks
// know.
func (s *stopper) agreed(step int64, saveIsDue bool) (cause int32, save bool, err error) {
	if s.world.Size() == 1 {
		return s.cause.Load(), saveIsDue, nil
	}
	if step < s.next {
		return goOn, false, nil
	}
	// Votes for each cause, then rank 0's: for a checkpoint, and when to talk again, in updates.
	votes := make([]float64, causes+2)
	votes[s.cause.Load()] = 1
	if s.world.IsMain() {
		votes[causes+1] = float64(s.interval(step))
		if saveIsDue {
			votes[causes] = 1
		}
	}
	if err := s.world.AllReduceSum(votes); err != nil {
		return goOn, false, err
	}
	s.next = step + int64(votes[causes+1])
	for cause = causes - 1; cause > goOn && votes[cause] == 0; cause-- {
	}
	return cause, votes[causes] > 0, nil
}

// interval is the number of updates in agreementInterval.
func (s *stopper) interval(step int64) int64 {
	now := time.Now()
	steps, elapsed := step-s.lastStep, now.Sub(s.lastTime)
	s.lastStep, s.lastTime = step, now
	if steps < 1 || elapsed <= 0 {
		return 1
	}
	return min(max(int64(agreementInterval)*steps/int64(elapsed), 1), 1000)
}
