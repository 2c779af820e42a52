package run

import (
	"context"
	"slices"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// look queries the run's status, and records it if the run has ended. It returns the run with its
// updated manifest. surveys, if not nil, answer for many runs.
func (rs *Runs) look(ctx context.Context, r Run, surveys map[submit.Scheduler]submit.Survey) (Run, submit.Status, error) {
	asker, survey := submit.Asker(r.Scheduler), surveys[r.Scheduler]
	if survey == nil {
		survey = r.survey(ctx)
	} else {
		asker = survey
	}
	r, r.unasked = rs.adopted(ctx, r, survey)
	r = rs.requeued(ctx, r, asker, survey)
	status, err := r.asker(asker).Status(ctx, r.Job())
	if err == nil && !r.settled() && status.State.Ended() {
		rs.WarnUnlessForbidden(rs.recordEnd(ctx, r.Job(), status))
	}
	return r, status, err
}

// surveys returns a survey of each scheduler that can be asked about many jobs.
func (rs *Runs) surveys(ctx context.Context, runs []Run) map[submit.Scheduler]submit.Survey {
	jobs := map[submit.Scheduler][]submit.Job{}
	for _, r := range runs {
		if r.taken() && !r.settled() {
			jobs[r.Scheduler] = append(jobs[r.Scheduler], r.Job())
		}
	}
	all := map[submit.Scheduler]submit.Survey{}
	for _, s := range rs.Schedulers {
		if surveyor, ok := s.(submit.Surveyor); ok {
			all[s] = surveyor.Survey(ctx, jobs[s]...)
		}
	}
	return all
}

// adopted returns the run with a job that the scheduler has but the run does not know, if there is
// one: it was queued by hand, or by a command that was killed before it could record it.
func (rs *Runs) adopted(ctx context.Context, r Run, survey submit.Survey) (Run, error) {
	if r.taken() || survey == nil {
		return r, nil
	}
	job, err := survey.Find(ctx, r.Dir, r.Manifest.EarlierJobs())
	if err != nil || job.ID == "" {
		return r, err
	}
	r.Manifest.JobID, r.Manifest.Cluster = string(job.ID), job.Cluster
	rs.WarnUnlessForbidden(rs.update(ctx, r.Dir, func(m *rundir.Manifest) {
		if m.JobID == "" && !slices.Contains(m.EarlierJobs(), string(job.ID)) { // Otherwise another command was faster.
			m.JobID, m.Cluster, m.State = string(job.ID), job.Cluster, string(submit.Pending)
		}
	}))
	return r, nil
}

// requeued returns the run without its recorded end if the scheduler has requeued the same job: an
// ended job can be requeued as long as SLURM knows it, and then waits before it starts. If the
// scheduler has no answer, the recorded end stays.
func (rs *Runs) requeued(ctx context.Context, r Run, asker submit.Asker, survey submit.Survey) Run {
	if survey == nil || !r.taken() || !r.settled() || submit.State(r.Manifest.State) == submit.Completed {
		return r
	}
	known, err := survey.Find(ctx, r.Dir, r.Manifest.EarlierJobs())
	if err != nil || known.ID != r.Job().ID {
		return r // Jobs that the scheduler has forgotten are many, and each would need its own query.
	}
	status, err := asker.Status(ctx, r.Job())
	if err != nil || status.State == submit.Unknown || status.State.Ended() || status.Ending {
		return r
	}
	ended := *r.Manifest.Ended
	r.Manifest.ForgetEnd()
	rs.WarnUnlessForbidden(rs.updateJob(ctx, r.Job(), func(m *rundir.Manifest) {
		if m.Ended != nil && m.Ended.Equal(ended) { // Otherwise another command has recorded a newer end.
			m.ForgetEnd()
		}
	}))
	return r
}
