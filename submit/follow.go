package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Asker tells how a job fares, as Scheduler.Status does.
type Asker interface {
	Status(ctx context.Context, job Job) (Status, error)
}

// FollowOptions say where Follow writes and how often it looks.
type FollowOptions struct {
	// Out gets the log of Rank.
	Out  io.Writer
	Rank int
	// Progress gets a line for each change of the job's state.
	Progress io.Writer
	// LogInterval is the time between two looks at the log; zero is 200 ms.
	LogInterval time.Duration
	// StatusInterval is the shortest time between two questions to the scheduler, which grows to ten times that while
	// nothing changes; zero is 1 s.
	StatusInterval time.Duration
}

// maxStatusErrors is how often in a row the scheduler may fail to answer before Follow gives up.
const maxStatusErrors = 5

// Follow streams a rank's log until the job ends. A job that ended well gives no error, any other a *JobError: it is
// judged by its state, not by its exit code. If ctx ends first, the job goes on and Follow returns ctx's error.
func Follow(ctx context.Context, scheduler Asker, job Job, opt FollowOptions) (Status, error) {
	f := newFollower(scheduler, job, opt)
	ticker := time.NewTicker(f.opt.LogInterval)
	defer ticker.Stop()
	for {
		if err := f.copyLog(); err != nil {
			return f.last, err
		}
		ended, err := f.ask(ctx)
		if err != nil {
			return f.last, err
		}
		if ended {
			return f.finish()
		}
		select {
		case <-ctx.Done():
			return f.last, context.Cause(ctx)
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
	errors    int
	// confirmed counts how often in a row the job was seen in an ended state that may be left by a requeue.
	confirmed int
	// endSeen is set once the batch script's own record of its end was noticed.
	endSeen bool
}

func newFollower(scheduler Asker, job Job, opt FollowOptions) *follower {
	if opt.LogInterval == 0 {
		opt.LogInterval = 200 * time.Millisecond
	}
	if opt.StatusInterval == 0 {
		opt.StatusInterval = time.Second
	}
	return &follower{scheduler: scheduler, job: job, opt: opt, log: NewTail(job.Dir.RankLog(opt.Rank)), interval: opt.StatusInterval}
}

func (f *follower) copyLog() error {
	if _, err := f.log.Copy(f.opt.Out); err != nil {
		return fmt.Errorf("follow job %s: %w", f.job.ID, err)
	}
	return nil
}

// ask asks for the job's state if it is time to, and tells whether the job has ended for good.
func (f *follower) ask(ctx context.Context) (ended bool, err error) {
	if time.Now().Before(f.nextAsk) && !f.scriptEnded() {
		return false, nil
	}
	status, err := f.scheduler.Status(ctx, f.job)
	if err != nil {
		return false, f.tolerate(ctx, err)
	}
	f.errors = 0
	f.show(status)
	f.nextAsk = time.Now().Add(f.interval)
	f.interval = min(f.interval*3/2, 10*f.opt.StatusInterval)
	if !status.State.Ended() {
		f.confirmed = 0
		return false, nil
	}
	f.confirmed++
	return !status.State.requeues() || f.confirmed > 2, nil
}

// scriptEnded notices, once, that the batch script recorded its end: no need to wait for the next question then.
func (f *follower) scriptEnded() bool {
	_, err := os.Stat(f.job.Dir.ExitStatus())
	noticed := err == nil && !f.endSeen
	f.endSeen = err == nil
	if noticed {
		f.interval = f.opt.StatusInterval
	}
	return noticed
}

// tolerate lets a few failures in a row pass: a scheduler that restarts does not end the job.
func (f *follower) tolerate(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f.errors++
	if f.errors >= maxStatusErrors {
		return fmt.Errorf("follow job %s: %d times in a row: %w (the job may go on; its run directory is %s)", f.job.ID, f.errors, err, f.job.Dir.Path())
	}
	fmt.Fprintf(f.opt.Progress, "job %s: %v; asking again\n", f.job.ID, err)
	f.nextAsk = time.Now().Add(f.interval)
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
	fmt.Fprintf(f.opt.Progress, "job %s: %s\n", f.job.ID, text)
}

// finish copies what the log got last, and judges.
func (f *follower) finish() (Status, error) {
	err := f.copyLog()
	if f.last.State != Completed {
		err = errors.Join(NewJobError(f.job, f.last), err)
	}
	return f.last, err
}
