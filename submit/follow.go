package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// FollowOptions say where Follow writes and how often it looks.
type FollowOptions struct {
	// Out gets the log of Rank.
	Out  io.Writer
	Rank int
	// Progress gets a line for each change of the job's state.
	Progress io.Writer
	// LogInterval is the time between two looks at the log; zero is 200 ms.
	LogInterval time.Duration
	// StatusInterval is the shortest time between two questions to the scheduler, which grows to
	// ten times that while nothing changes; zero is 1 s.
	StatusInterval time.Duration
}

// maxBackOff is the longest time between two questions to a scheduler that does not answer, in
// StatusIntervals: a minute or so.
const maxBackOff = 60

// Follow streams a rank's log until the job ends. A job that ended well gives no error, any other a
// *JobError: it is judged by its state, not by its exit code. If ctx ends first, the job goes on
// and Follow returns ctx's error.
//
// A scheduler that does not answer is asked again, less and less often, for as long as it takes:
// the log goes on meanwhile.
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
	// waits is set while the scheduler is being asked; its answer comes through answers.
	waits   bool
	answers chan answer
	asking  sync.WaitGroup
	// away is set once it was said that the scheduler does not answer.
	away bool
	// confirmed counts how often in a row the job was seen in an ended state that may be left by a
	// requeue.
	confirmed int
	// endSeen is set once the batch script's own record of its end was noticed.
	endSeen bool
}

// answer is what the scheduler said.
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

// ask asks for the job's state, beside the log, if it is time to.
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

// take looks at the scheduler's answer, and reports whether the job has ended for good.
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

// scriptEnded notices, once, that the batch script recorded its end: no need to wait for the next
// question then.
func (f *follower) scriptEnded() bool {
	_, err := os.Stat(f.job.Dir.ExitStatus())
	noticed := err == nil && !f.endSeen
	f.endSeen = err == nil
	if noticed {
		f.interval = f.opt.StatusInterval
	}
	return noticed
}

// tolerate lets failures pass, however many: a scheduler that restarts, or that cannot be reached
// for a while, does not end the job. That is said once. An error that stays ends the following, not
// the job.
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

// show prints a status that differs from the last one shown, and asks more often again.
func (f *follower) show(status Status) {
	f.last = status
	text := status.String()
	if text == f.shown {
		return
	}
	f.shown = text
	f.interval = f.opt.StatusInterval
	fmt.Fprintf(f.opt.Progress, "%s: %s\n", f.job, text)
}

// finish copies what the log got last, and judges.
func (f *follower) finish() (Status, error) {
	err := f.copyLog()
	if f.last.State != Completed {
		err = errors.Join(NewJobError(f.job, f.last), err)
	}
	return f.last, err
}
