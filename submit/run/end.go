package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/slurm"
)

// endPoll is the time between two looks at a job whose last processes are ending.
const endPoll = time.Second

// mayResume refuses a run that has not ended, and waits for one that is just ending. It gives the
// run with its last job.
func (r run) mayResume(ctx context.Context, a *app, o *submitOptions) (run, error) {
	if r.manifest.Scheduler == localName {
		return r, r.mayResumeHere(ctx, a)
	}
	scheduler := slurm.New(a.runner)
	err := error(nil)
	if r.queued() {
		err = r.waitForEnd(ctx, a, scheduler)
	}
	if err == nil {
		r, err = r.waitForOthers(ctx, a, scheduler)
	}
	if errors.Is(err, exec.ErrNotFound) && o.NoSubmit {
		return r, nil // Nothing will be queued from here.
	}
	return r, err
}

// waitForOthers is waitForEnd for a job that the run does not know of: somebody has queued the
// script by hand, and it waits yet. The job becomes the run's last one.
func (r run) waitForOthers(ctx context.Context, a *app, scheduler *slurm.Scheduler) (run, error) {
	known, err := rundir.KnownJobs(r.dir)
	if err != nil {
		return r, err
	}
	job, err := scheduler.Survey(ctx).Find(ctx, r.dir, append(known, r.manifest.JobID))
	if err != nil || job.ID == "" {
		return r, err
	}
	r.manifest.JobID, r.manifest.Cluster, r.manifest.Ended = string(job.ID), job.Cluster, nil
	return r, r.waitForEnd(ctx, a, scheduler)
}

// mayResumeHere refuses a run on a machine that goes on. The programs of one whose submit command
// was killed are waited for: they may be saving.
func (r run) mayResumeHere(ctx context.Context, a *app) error {
	status, err := manifestAsker{}.Status(ctx, r.job())
	switch {
	case err != nil:
		return err
	case !status.State.Ended() && r.manifest.Process != nil:
		return fmt.Errorf("run %s has not ended: it is %s on %s", r.dir.Name(), status, r.manifest.Process.Host)
	}
	for said := false; ; {
		programs, err := rundir.Programs(r.dir)
		if err != nil || len(programs) == 0 {
			return err
		}
		if !said {
			fmt.Fprintf(a.err, "waiting for programs of the run that have not ended (processes %d)\n", programs)
			said = true
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(endPoll):
		}
	}
}

// waitForEnd refuses a job that has not ended. SLURM is asked though the manifest knows an end: the
// job's last processes may still be there, and may write. Those are waited for.
func (r run) waitForEnd(ctx context.Context, a *app, scheduler *slurm.Scheduler) error {
	said := false
	for {
		status, err := scheduler.Status(ctx, r.job())
		var never submit.Unanswerable
		switch {
		case errors.As(err, &never) && r.settled() && !errors.Is(err, exec.ErrNotFound):
			return nil // It has ended on a cluster that cannot be asked from here.
		case err != nil:
			return fmt.Errorf("run %s cannot be resumed before SLURM says that its job has ended: %w", r.dir.Name(), err)
		case status.State.Ended():
			if !r.settled() {
				a.warnUnlessForbidden(recordEnd(a, r.job(), status))
			}
			return nil
		case !status.Ending:
			return fmt.Errorf("run %s has not ended: job %s is %s; wait for it, or end it with submit cancel %[2]s", r.dir.Name(), r.manifest.JobID, status)
		}
		if !said {
			fmt.Fprintf(a.err, "job %s has ended; waiting for its last processes\n", r.manifest.JobID)
			said = true
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(endPoll):
		}
	}
}
