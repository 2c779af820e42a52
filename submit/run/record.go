package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/slurm"
)

// queue hands the run to SLURM and keeps its job. It is not cut off by the end of ctx. The caller
// has the run's lock.
func queue(ctx context.Context, a *app, spec submit.JobSpec) (submit.Job, error) {
	stop := context.AfterFunc(ctx, func() {
		fmt.Fprintln(a.err, "submit: waiting for sbatch, which may have queued the job already; interrupt again to stop waiting")
	})
	defer stop()
	a.warnIgnored()
	job, err := slurm.New(a.runner).Submit(ctx, spec)
	if err != nil {
		return job, err
	}
	return job, recordJob(job, a.now())
}

// announce says what to do next with a job by command, and follows it if that is asked for.
func announce(ctx context.Context, a *app, spec submit.JobSpec, job submit.Job, following bool, command func(words ...string) string) error {
	fmt.Fprintf(a.out, "job %s: %s on %d nodes, %d ranks\nrun directory: %s\n", job.ID, spec.Name, spec.Nodes, spec.Tasks(), spec.RunDir.Path())
	if ctx.Err() != nil {
		return fmt.Errorf("%w; the job is queued all the same; end it with: %s", context.Cause(ctx), command("cancel", string(job.ID)))
	}
	if !following {
		_, err := fmt.Fprintf(a.out, "follow it:     %s\n", command("logs", "-f", string(job.ID)))
		return err
	}
	return follow(ctx, a, slurm.New(a.runner), job, 0)
}

// follow shows a rank's log until the job ends, and keeps how it ended.
func follow(ctx context.Context, a *app, scheduler submit.Asker, job submit.Job, rank int) error {
	status, err := submit.Follow(ctx, scheduler, job, submit.FollowOptions{Out: a.out, Progress: a.err, Rank: rank})
	if status.State.Ended() {
		a.warnUnlessForbidden(recordEnd(a, job, status))
		return err
	}
	var interrupt submit.Interrupt
	if errors.As(err, &interrupt) {
		fmt.Fprintf(a.err, "job %s goes on; end it with: submit cancel %s\n", job.ID, job.ID)
	}
	return err
}

// recordJob keeps the job that SLURM has taken.
func recordJob(job submit.Job, now time.Time) error {
	err := rundir.UpdateManifest(job.Dir, func(m *rundir.Manifest) {
		m.JobID, m.Cluster, m.Submitted, m.State = string(job.ID), job.Cluster, &now, string(submit.Pending)
	})
	if err != nil {
		return fmt.Errorf("job %s is queued, but its run directory could not be told so: %w", job.ID, err)
	}
	return nil
}

// updateJob changes the manifest of a job's run, unless the run has another job by now.
func updateJob(job submit.Job, change func(*rundir.Manifest)) error {
	var adoptErr error
	err := rundir.UpdateManifest(job.Dir, func(m *rundir.Manifest) {
		if _, adoptErr = m.Adopt(job.Dir); adoptErr == nil && m.JobID == string(job.ID) {
			change(m)
		}
	})
	return errors.Join(err, adoptErr)
}

// recordStatus keeps the state of a job that has ended: SLURM forgets it after some minutes. A
// state that is kept already stays.
func recordStatus(job submit.Job, status submit.Status, now time.Time) error {
	var endErr error
	err := updateJob(job, func(m *rundir.Manifest) {
		if (run{manifest: *m}).settled() {
			return
		}
		m.State, m.Reason = string(status.State), status.Reason
		if status.State.Ended() {
			endErr = m.RecordEnd(job.Dir, now, status.ExitCode)
		}
	})
	return errors.Join(err, endErr)
}
