package slurm

import (
	"context"
	"errors"
	"fmt"

	"gonbatch/submit"
)

// errForgotten is the error of a query for a job that the cluster does not know.
var errForgotten = errors.New("SLURM does not know the job")

// Status asks scontrol. For a job that SLURM has forgotten, it uses the files in the run directory
// and SLURM's accounting, if there is one. It knows a job that has recorded its end even if the
// controller does not answer.
func (s *Scheduler) Status(ctx context.Context, job submit.Job) (submit.Status, error) {
	found, err := s.find(ctx, job)
	return s.judge(ctx, job, found, err, s.accountsOf(job))
}

// judge returns the status of a job from the result of a search for its record.
func (s *Scheduler) judge(ctx context.Context, job submit.Job, found record, err error, a *accounts) (submit.Status, error) {
	if errors.Is(err, errForgotten) {
		return a.forgotten(ctx, job)
	}
	if err != nil {
		if status, ended, readErr := recordedEnd(job); ended && readErr == nil {
			return status, nil
		}
		return submit.Status{}, fmt.Errorf("status of job %s: %w", job.ID, err)
	}
	status, err := found.status()
	if err != nil {
		return submit.Status{}, fmt.Errorf("status of job %s: %w", job.ID, err)
	}
	if status.State.Ended() && status.State != submit.Completed {
		status.FailedRank = failedRank(job.Dir)
	}
	return status, nil
}

// find finds the job's record on its own cluster. It ignores another run's job with the same id.
func (s *Scheduler) find(ctx context.Context, job submit.Job) (record, error) {
	found, err := s.show(ctx, "", job)
	if !errors.Is(err, errForgotten) {
		return found, err
	}
	return s.findElsewhere(ctx, job)
}

// findElsewhere finds the record of a job that this machine's cluster does not know, if another
// cluster took it.
func (s *Scheduler) findElsewhere(ctx context.Context, job submit.Job) (record, error) {
	here, err := s.clusterName(ctx)
	if err != nil {
		return record{}, err
	}
	if job.Cluster == "" || here == "" || job.Cluster == here {
		return record{}, errForgotten
	}
	if err := s.reachable(job.Cluster); err != nil {
		return record{}, elsewhere(job, here, err)
	}
	found, err := s.show(ctx, job.Cluster, job)
	if err != nil && !errors.Is(err, errForgotten) {
		s.cannotReach(job.Cluster, err)
		return found, elsewhere(job, here, err)
	}
	return found, err
}

// show asks a cluster ("" is this machine's) for the job.
func (s *Scheduler) show(ctx context.Context, cluster string, job submit.Job) (record, error) {
	out, err := s.runner.Run(ctx, "scontrol", clusterArgs(cluster, "show", "job", string(job.ID))...)
	if unknownJob(err) {
		return record{}, errForgotten
	}
	if err != nil {
		return record{}, unanswered(err)
	}
	for _, found := range records(string(out)) {
		if found.id() == job.ID && found.runs(job.Dir) {
			return found, nil
		}
	}
	return record{}, errForgotten
}
