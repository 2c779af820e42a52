// Package stop makes all ranks of a training stop together, when one of them is told to.
package stop

import (
	"context"
	"sync/atomic"
	"time"

	"gonbatch/distributed"
)

// Stopper learns that this process was told to stop, and makes all ranks stop after the same
// update.
type Stopper struct {
	world    Voters
	now      func() time.Time
	cause    atomic.Int32    // The most important reason on this rank.
	caller   context.Context // Of Fit.
	ctx      context.Context // Ends when the user or the scheduler tells this rank to stop.
	end      func()
	next     int64 // The update after which the ranks vote next.
	lastStep int64
	lastTime time.Time
}

// Voters are the ranks that stop together.
type Voters interface {
	Size() int
	IsMain() bool
	AllReduceSum(values []float64) error
}

var _ Voters = (*distributed.World)(nil)

// Reasons to stop, in order of importance: the largest on any rank wins.
const (
	GoOn int32 = iota
	TimeIsUp
	Interrupted // By the user (SIGINT), or the context.
	Terminated  // By the scheduler: SIGUSR1, SIGTERM.
	causes
)

// votePause is the approximate time between two votes of the ranks. Each is an all-reduce of a few
// numbers, which takes a good part of an update if the ranks are many.
const votePause = time.Second

// mostUpdates limits the updates between two votes, in case they suddenly take longer.
const mostUpdates = 50

// New returns the stopper of a training that has done this many updates.
func New(ctx context.Context, w Voters, step int64, now func() time.Time) *Stopper {
	s := &Stopper{world: w, now: now, lastStep: step, lastTime: now(), caller: ctx}
	s.ctx, s.end = context.WithCancel(ctx)
	return s
}

// reason returns the most important reason on this rank so far.
func (s *Stopper) reason() int32 {
	if s.caller.Err() != nil {
		s.Tell(Interrupted)
	}
	return s.cause.Load()
}

// Tell records a reason unless there is a more important one.
func (s *Stopper) Tell(cause int32) {
	for old := s.cause.Load(); old < cause && !s.cause.CompareAndSwap(old, cause); {
		old = s.cause.Load()
	}
	if cause > TimeIsUp {
		s.end()
	}
}

// Context ends when this rank is told to stop before its time is up.
func (s *Stopper) Context() context.Context { return s.ctx }

// Close frees what the context holds.
func (s *Stopper) Close() { s.end() }

// Agreed returns, after an update, why all ranks must stop now, and whether rank 0 wants a
// checkpoint. It is collective, but communicates only after updates that all ranks know. On rank 0,
// due is the time until it wants to vote for the end or a checkpoint.
func (s *Stopper) Agreed(step int64, saveIsDue bool, due time.Duration) (cause int32, save bool, err error) {
	if s.world.Size() == 1 {
		return s.reason(), saveIsDue, nil
	}
	if step < s.next {
		return GoOn, false, nil
	}
	interval := s.interval(step, due)
	cause, save, interval, err = s.Vote(saveIsDue, interval)
	s.next = step + interval
	return cause, save, err
}

// Vote asks all ranks why they should stop. Rank 0 decides whether a checkpoint is due and after
// how many updates to vote again.
func (s *Stopper) Vote(saveIsDue bool, interval int64) (cause int32, save bool, next int64, err error) {
	votes := make([]float64, causes+2)
	votes[s.reason()] = 1
	if s.world.IsMain() {
		votes[causes+1] = float64(interval)
		if saveIsDue {
			votes[causes] = 1
		}
	}
	if err := s.world.AllReduceSum(votes); err != nil {
		return GoOn, false, 1, err
	}
	for cause = causes - 1; cause > GoOn && votes[cause] == 0; cause-- {
	}
	return cause, votes[causes] > 0, int64(votes[causes+1]), nil
}

// interval returns the number of updates until the next vote, by the time that the latest ones
// took. It goes only halfway to what is due, so that the vote isn't late if the next ones take
// longer, and at most twice as far as what it has measured.
func (s *Stopper) interval(step int64, due time.Duration) int64 {
	now := s.now()
	steps, elapsed := step-s.lastStep, now.Sub(s.lastTime)
	s.lastStep, s.lastTime = step, now
	if steps < 1 || elapsed <= 0 {
		return 1
	}
	pause := min(votePause, max(due, 0)/2)
	return max(min(int64(pause)*steps/int64(elapsed), 2*steps, mostUpdates), 1)
}
