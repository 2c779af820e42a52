package run

import (
	"context"
	"fmt"
	"time"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// sweepPoll is the time between two looks at a sweep's jobs, and sweepPollMost when nothing
// changes.
const (
	sweepPoll     = time.Second
	sweepPollMost = 15 * time.Second
)

// followSweep says what becomes of a sweep's runs until all have ended. It returns an error unless
// all have completed. If ctx ends first, they go on.
func (rs *Runs) followSweep(ctx context.Context, sweep string) error {
	pause, shown := sweepPoll, map[string]string{}
	for {
		runs, err := rs.FindAll(sweep)
		if err != nil {
			return err
		}
		surveys := rs.surveys(ctx, runs)
		ended, failed, changed := 0, 0, false
		for _, r := range runs {
			_, status, err := rs.look(ctx, r, surveys)
			if err != nil {
				status = submit.Status{State: submit.Unknown, Reason: firstLine(err)}
			}
			if status.State.Ended() {
				ended++
				if status.State != submit.Completed {
					failed++
				}
			}
			if text := status.String(); shown[r.Dir.Name()] != text {
				shown[r.Dir.Name()], changed = text, true
				values, _ := valuesOf(r.Manifest)
				fmt.Fprintf(rs.Err, "%s: %s: %s\n", r.Job(), values, rundir.Printable(text))
			}
		}
		switch {
		case ended == len(runs) && failed > 0:
			return fmt.Errorf("%d of %s of the sweep did not complete: submit resume %s runs those again", failed, plural.Of(len(runs), "run"), sweep)
		case ended == len(runs):
			return nil
		case changed:
			pause = sweepPoll
		}
		select {
		case <-ctx.Done():
			fmt.Fprintf(rs.Err, "the sweep continues; cancel it with: %s\n", rs.command(sweep, "cancel"))
			return context.Cause(ctx)
		case <-time.After(pause):
			pause = min(pause*3/2, sweepPollMost)
		}
	}
}

// ResumeSweep resumes the runs of a sweep that have ended and did not complete.
func (rs *Runs) ResumeSweep(ctx context.Context, runs []Run, change func(Run) Changes, m Manner) error {
	m.Follow = false
	surveys := rs.surveys(ctx, runs)
	resumed := 0
	for _, r := range runs {
		_, status, err := rs.look(ctx, r, surveys)
		if err != nil {
			return err
		}
		if !status.State.Ended() || status.State == submit.Completed {
			continue
		}
		if err := rs.Resume(ctx, r, change(r), m); err != nil {
			return fmt.Errorf("run %s: %w", r.Dir.Name(), err)
		}
		resumed++
	}
	if resumed == 0 {
		return fmt.Errorf("the sweep has no run to resume: all of its %s have completed, or not ended yet", plural.Of(len(runs), "run"))
	}
	return nil
}
