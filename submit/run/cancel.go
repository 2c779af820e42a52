package run

import (
	"context"
	"errors"
	"fmt"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// Cancel ends the run's job, and keeps that. A job that was still waiting has ended then; of one
// that ran the scheduler says so later. One that has ended already is left alone: then ended is its
// status. Where nothing can be written, as on a full disk, the job is ended all the same.
func (rs *Runs) Cancel(ctx context.Context, r Run) (job submit.Job, ended *submit.Status, err error) {
	lock, err := rs.lock(ctx, r.Dir)
	switch {
	case ctx.Err() != nil:
		return job, nil, err
	case err != nil:
		rs.WarnUnlessForbidden(err)
	default:
		defer func() { rs.WarnUnlessForbidden(lock.Release()) }()
	}
	if r, err = rs.open(r.Dir); err != nil {
		return job, nil, err
	}
	r, status, err := rs.look(ctx, r, nil)
	if err != nil {
		return job, nil, err
	}
	job = r.Job()
	switch {
	case !r.taken():
		return job, nil, errors.Join(r.unasked, fmt.Errorf("run %s is staged, not queued as far as is known here: there is nothing to cancel", r.Dir.Name()))
	case status.State.Ended():
		return job, &status, nil
	}
	if err := r.Scheduler.Cancel(ctx, job); err != nil {
		return job, nil, err
	}
	rs.WarnUnlessForbidden(rs.recordCancel(ctx, r))
	return job, nil, nil
}

// recordCancel keeps that the job was cancelled. Until its last processes are gone it may yet end
// otherwise. A process of its own records that itself.
func (rs *Runs) recordCancel(ctx context.Context, r Run) error {
	job := r.Job()
	if job.Process != nil {
		return nil
	}
	status, err := r.Scheduler.Status(ctx, job)
	if err == nil && status.State.Ended() && !status.Inferred {
		return rs.recordEnd(job, status)
	}
	return updateJob(job, func(m *rundir.Manifest) { m.State, m.Reason = string(submit.Cancelled), "" })
}
