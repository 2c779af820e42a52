package run

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/report"
)

// Cancel ends all jobs of the run, and records that. A waiting job ends at once; for a running one
// the scheduler reports the end later. Cancel leaves a job alone that has ended already. It cancels
// the job even if it cannot write the record, as on a full disk.
func (rs *Runs) Cancel(ctx context.Context, r Run) (c report.Cancellation, err error) {
	if err := r.Dir.CheckOwner(); err != nil {
		return c, err
	}
	lock, err := rs.lock(ctx, r.Dir)
	if err == nil {
		defer func() { rs.WarnUnlessForbidden(lock.Release()) }()
	}
	if ctx.Err() != nil {
		return c, context.Cause(ctx)
	}
	rs.WarnUnlessForbidden(err)
	named := r.namedJob
	if r, err = rs.open(r.Dir); err != nil {
		return c, err
	}
	r, status, err := rs.look(ctx, r, nil)
	if err != nil {
		return c, err
	}
	job := r.Job()
	c = report.Cancellation{Run: r.Dir.Name(), Directory: r.Dir.Path(), Job: string(job.ID), Title: job.String()}
	live, err := r.otherJobs(ctx)
	if err != nil && !status.State.Ended() {
		return c, err
	}
	if named != "" && named != string(job.ID) && !slices.ContainsFunc(live, func(j submit.Job) bool { return string(j.ID) == named }) {
		return c, fmt.Errorf("job %s has ended already; to cancel the run's current job: %s", named, rs.command(r.word(), "cancel"))
	}
	for _, other := range live {
		if err := r.Scheduler.Cancel(ctx, other); err != nil {
			return c, err
		}
		c.Also = append(c.Also, string(other.ID))
	}
	switch {
	case !r.taken() && SweepOf(r.Manifest) != "" && r.unasked == nil:
		return c, rs.cancelStaged(ctx, r)
	case !r.taken():
		return c, errors.Join(r.unasked, fmt.Errorf("run %s is staged, and not queued as far as submit can tell: there is nothing to cancel", r.Dir.Name()))
	case status.State.Ended():
		c.Ended = status.String()
		return c, nil
	}
	if err := r.Scheduler.Cancel(ctx, job); err != nil {
		return c, err
	}
	rs.WarnUnlessForbidden(rs.recordCancel(ctx, r))
	return c, nil
}

// cancelStaged records that a run of a sweep is cancelled that has never been queued, so that it is
// not queued after the sweep's other runs.
func (rs *Runs) cancelStaged(ctx context.Context, r Run) error {
	var endErr error
	err := rs.update(ctx, r.Dir, func(m *rundir.Manifest) {
		m.State, endErr = string(submit.Cancelled), m.RecordEnd(r.Dir, rs.Now(), 1)
	})
	return errors.Join(err, endErr)
}

// otherJobs returns the run's jobs that have not ended, except its last one, unless that has been
// requeued since its end was recorded.
func (r Run) otherJobs(ctx context.Context) ([]submit.Job, error) {
	survey := r.survey(ctx)
	if survey == nil {
		return nil, nil
	}
	live, err := survey.Live(ctx, r.Dir)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil // There is no scheduler here, and so no job that could be ended from here.
	}
	return slices.DeleteFunc(live, func(j submit.Job) bool { return j.ID == r.Job().ID && !r.settled() }), err
}

// recordCancel records that the job was cancelled. Until its last processes are gone, it may still
// end differently. A job with its own process records its end itself.
func (rs *Runs) recordCancel(ctx context.Context, r Run) error {
	job := r.Job()
	if job.Process != nil {
		return nil
	}
	status, err := r.Scheduler.Status(ctx, job)
	if err == nil && status.State.Ended() && !status.Inferred {
		return rs.recordEnd(ctx, job, status)
	}
	return rs.updateJob(ctx, job, func(m *rundir.Manifest) { m.State, m.Reason, m.Explanation = string(submit.Cancelled), "", "" })
}
