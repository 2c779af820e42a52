package run

import (
	"context"
	"errors"
	"fmt"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/executed"
)

// update changes the manifest of a run. It prints a message while another process holds its lock.
func (rs *Runs) update(ctx context.Context, dir rundir.Dir, change func(*rundir.Manifest)) error {
	return rundir.UpdateManifest(ctx, dir, func(p rundir.Process) {
		fmt.Fprintf(rs.Err, "waiting for process %d on %s, which is changing the record of run %s\n", p.PID, p.Host, dir.Name())
	}, change)
}

// recordJob records the job that a scheduler has accepted.
func (rs *Runs) recordJob(ctx context.Context, job submit.Job) error {
	err := rs.update(ctx, job.Dir, func(m *rundir.Manifest) {
		if job.Process != nil {
			m.Process, m.State = job.Process, string(submit.Running)
			return
		}
		now := rs.Now()
		m.JobID, m.Cluster, m.Submitted, m.State = string(job.ID), job.Cluster, &now, string(submit.Pending)
	})
	if err != nil {
		return fmt.Errorf("%s is queued, but its run directory could not record it: %w", job, err)
	}
	return nil
}

// updateJob changes the manifest of a job's run, unless the run now has another job.
func (rs *Runs) updateJob(ctx context.Context, job submit.Job, change func(*rundir.Manifest)) error {
	var adoptErr error
	err := rs.update(ctx, job.Dir, func(m *rundir.Manifest) {
		if _, adoptErr = m.Adopt(job.Dir); adoptErr == nil && m.JobID == string(job.ID) {
			change(m)
		}
	})
	return errors.Join(err, adoptErr)
}

// recordEnd records how a job ended, and notes it in the executed notebook if the job was killed
// with its recorder. It does not record an inferred end, which can be inferred again and may be
// corrected by the scheduler, nor that a run was lost.
func (rs *Runs) recordEnd(ctx context.Context, job submit.Job, status submit.Status) error {
	if err := job.Dir.CheckOwner(); err != nil || status.Inferred {
		return err
	}
	settled := executed.Settle(job.Dir, rs.Now, executed.OutcomeOf(status, job.Dir))
	if status.State == submit.Lost {
		return settled
	}
	return errors.Join(rs.recordStatus(ctx, job, status), settled)
}

// recordStatus records the state of a job that has ended, because schedulers forget it after some
// minutes. It doesn't change an end that is recorded already.
func (rs *Runs) recordStatus(ctx context.Context, job submit.Job, status submit.Status) error {
	var endErr error
	err := rs.updateJob(ctx, job, func(m *rundir.Manifest) {
		if (Run{Manifest: *m}).settled() {
			return
		}
		m.State, m.FailedRank, m.Signal = string(status.State), status.FailedRank, status.Signal
		m.Reason, m.Explanation = status.Reason, status.Explanation
		if status.State.Ended() {
			endErr = m.RecordEnd(job.Dir, rs.Now(), status.ExitCode)
		}
	})
	return errors.Join(err, endErr)
}
