package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"time"

	"gonbatch/internal/proc"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// endPoll is the time between two checks of a job whose last processes are ending.
const endPoll = time.Second

// mayResume refuses a run that has not ended, and waits for one that is just ending. It returns the
// run with its last job.
func (rs *Runs) mayResume(ctx context.Context, r Run, noSubmit bool) (Run, error) {
	err := error(nil)
	if r.taken() {
		err = rs.waitForEnd(ctx, r)
	}
	if err == nil {
		r, err = rs.waitForOthers(ctx, r)
	}
	if errors.Is(err, exec.ErrNotFound) && noSubmit {
		return r, nil // Nothing will be queued here.
	}
	return r, err
}

// waitForOthers is waitForEnd for any other job of the run: somebody has queued the script by hand,
// or has requeued a job that had ended. The job becomes the run's last one.
func (rs *Runs) waitForOthers(ctx context.Context, r Run) (Run, error) {
	survey := r.survey(ctx)
	if survey == nil {
		return r, nil
	}
	live, err := survey.Live(ctx, r.Dir)
	if err != nil {
		return r, err
	}
	for _, job := range live {
		r.Manifest.JobID, r.Manifest.Cluster, r.Manifest.Ended = string(job.ID), job.Cluster, nil
		if err := rs.waitForEnd(ctx, r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// waitForEnd refuses a job that has not ended. It asks the scheduler even if the manifest has an
// end, because the job's last processes may still be running and writing. It waits for these.
func (rs *Runs) waitForEnd(ctx context.Context, r Run) error {
	var never submit.Unanswerable
	for said := false; ; said = true {
		status, err := r.Scheduler.Status(ctx, r.Job())
		switch {
		case errors.As(err, &never) && r.settled() && !errors.Is(err, exec.ErrNotFound):
			return nil // It ended on a cluster that cannot be asked from here.
		case err != nil:
			return fmt.Errorf("run %s cannot be resumed before its scheduler says that the job has ended: %w", r.Dir.Name(), err)
		case status.State.Ended():
			if !r.settled() {
				rs.WarnUnlessForbidden(rs.recordEnd(ctx, r.Job(), status))
			}
			return rs.waitForPrograms(ctx, r)
		case !status.Ending:
			return rs.notEnded(r, status)
		}
		if !said {
			fmt.Fprintf(rs.Err, "%s has ended; waiting for its last processes\n", r.Job())
		}
		if err := sleep(ctx, endPoll); err != nil {
			return err
		}
	}
}

func (rs *Runs) notEnded(r Run, status submit.Status) error {
	job := r.Job().String()
	if p := r.Manifest.Process; p != nil {
		job = fmt.Sprintf("process %d on %s", p.PID, p.Host)
	}
	return fmt.Errorf("run %s has not ended: %s is %s; wait for it, or end it with %s", r.Dir.Name(), job, status, rs.command(r.word(), "cancel"))
}

// waitForPrograms waits for the programs of a local run whose submit command was killed: they may
// be saving.
func (rs *Runs) waitForPrograms(ctx context.Context, r Run) error {
	if r.Manifest.Process == nil {
		return nil
	}
	for said := false; ; said = true {
		programs := maps.Collect(proc.With(rundir.EnvDir + "=" + r.Dir.Path()))
		if len(programs) == 0 {
			return nil
		}
		if !said {
			fmt.Fprintf(rs.Err, "waiting for programs of the run that have not ended (processes %d)\n", slices.Sorted(maps.Keys(programs)))
		}
		if err := sleep(ctx, endPoll); err != nil {
			return err
		}
	}
}

// sleep waits a while, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
