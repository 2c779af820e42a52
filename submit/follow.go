package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"gonbatch/internal/rundir"
)

// FollowOptions configure where Follow writes and how often it polls.
type FollowOptions struct {
	// Out receives the log of Rank.
	Out  io.Writer
	Rank int
	// Progress receives a line for each change of the job's state.
	Progress io.Writer
	// LogInterval is the time between two reads of the log; zero is 200 ms.
	LogInterval time.Duration
	// StatusInterval is the shortest time between two queries to the scheduler; it grows tenfold
	// while nothing changes. Zero is 1 s.
	StatusInterval time.Duration
}

// maxBackOff is the longest time between two queries to a scheduler that does not answer, in
// StatusIntervals: about a minute.
const maxBackOff = 60

// Follow streams a rank's log until the job ends. It returns a *JobError unless the job's state is
// completed; the exit code doesn't decide. If ctx ends first, the job continues and Follow returns
// ctx's cause.
//
// Follow asks a scheduler that does not answer again, less and less often, for as long as it takes;
// meanwhile it streams the log.
func Follow(ctx context.Context, scheduler Asker, job Job, opt FollowOptions) (Status, error) {
	f := newFollower(scheduler, job, opt)
	ticker := time.NewTicker(f.opt.LogInterval)
	defer ticker.Stop()
	questions, stop := context.WithCancel(ctx)
	defer f.asking.Wait()
	defer stop()
	for {
		if err := f.copyLog(); err != nil {
			return f.last, err
		}
		f.ask(questions)
		select {
		case <-ctx.Done():
			return f.last, context.Cause(ctx)
		case a := <-f.answers:
			ended, err := f.take(a)
			if err != nil {
				return f.last, err
			}
			if ended {
				return f.finish()
			}
		case <-ticker.C:
		}
	}
}

// follower is the state of one Follow.
type follower struct {
	scheduler Asker
	job       Job
	opt       FollowOptions
	log       *Tail
	last      Status
	shown     string
	nextAsk   time.Time
	interval  time.Duration
	// waits is set during a query to the scheduler; its answer comes through answers.
	waits   bool
	answers chan answer
	asking  sync.WaitGroup
	// away is set once the user has been told that the scheduler does not answer.
	away bool
	// confirmed counts how often in a row the job was seen in an ended state; a requeue may still
	// change that.
	confirmed int
	// endSeen is set once the batch script's own record of its end has been seen.
	endSeen bool
}

// answer is the scheduler's answer to a query.
type answer struct {
	status Status
	err    error
}

func newFollower(scheduler Asker, job Job, opt FollowOptions) *follower {
	if opt.LogInterval == 0 {
		opt.LogInterval = 200 * time.Millisecond
	}
	if opt.StatusInterval == 0 {
		opt.StatusInterval = time.Second
	}
	return &follower{scheduler: scheduler, job: job, opt: opt, log: NewTail(job.Dir.RankLog(opt.Rank)), interval: opt.StatusInterval,
		answers: make(chan answer, 1)}
}

func (f *follower) copyLog() error {
	if _, err := f.log.Copy(f.opt.Out); err != nil {
		return fmt.Errorf("follow %s: %w", f.job, err)
	}
	return nil
}

// ask queries the job's state in the background when the next query is due.
func (f *follower) ask(ctx context.Context) {
	if f.waits || time.Now().Before(f.nextAsk) && !f.scriptEnded() {
		return
	}
	f.waits = true
	f.asking.Go(func() {
		status, err := f.scheduler.Status(ctx, f.job)
		f.answers <- answer{status, err}
	})
}

// take handles the scheduler's answer, and reports whether the job has ended for good.
func (f *follower) take(a answer) (ended bool, err error) {
	f.waits = false
	if a.err != nil {
		return false, f.tolerate(a.err)
	}
	if f.away {
		f.away, f.interval = false, f.opt.StatusInterval
		fmt.Fprintf(f.opt.Progress, "%s: the scheduler answers again\n", f.job)
	}
	f.show(a.status)
	f.nextAsk = time.Now().Add(f.interval)
	f.interval = min(f.interval*3/2, 10*f.opt.StatusInterval)
	if !a.status.State.Ended() {
		f.confirmed = 0
		return false, nil
	}
	f.confirmed++
	return !a.status.State.requeues() || f.confirmed > 2, nil
}

// scriptEnded reports, once, that the batch script has recorded its end, so that the next query
// need not wait.
func (f *follower) scriptEnded() bool {
	_, err := os.Stat(f.job.Dir.ExitStatus())
	noticed := err == nil && !f.endSeen
	f.endSeen = err == nil
	if noticed {
		f.interval = f.opt.StatusInterval
	}
	return noticed
}

// tolerate reports failed queries once and otherwise ignores them, however many there are: a
// scheduler that restarts or is unreachable for a while does not end the job. An Unanswerable error
// ends Follow, not the job.
func (f *follower) tolerate(err error) error {
	var never Unanswerable
	if errors.As(err, &never) {
		return fmt.Errorf("follow %s: %w (the job may still be running; its run directory is %s)", f.job, err, f.job.Dir.Path())
	}
	if !f.away {
		f.away = true
		fmt.Fprintf(f.opt.Progress, "%s: %v; the job may still be running: showing its log, and asking again until the scheduler answers\n", f.job, err)
	}
	f.nextAsk = time.Now().Add(f.interval)
	f.interval = min(f.interval*2, maxBackOff*f.opt.StatusInterval)
	return nil
}

// show prints a status that differs from the last one shown, and resets the query interval.
func (f *follower) show(status Status) {
	f.last = status
	text := status.String()
	if text == f.shown {
		return
	}
	f.shown = text
	f.interval = f.opt.StatusInterval
	fmt.Fprintf(f.opt.Progress, "%s: %s\n", f.job, rundir.Printable(text))
}

// finish copies the rest of the log, and returns the job's result.
func (f *follower) finish() (Status, error) {
	err := f.copyLog()
	if f.last.State != Completed {
		err = errors.Join(NewJobError(f.job, f.last), err)
	}
	return f.last, err
}
