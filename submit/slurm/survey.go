package slurm

import (
	"context"
	"errors"
	"sync"

	"gonbatch/submit"
)

// survey answers questions about many jobs with a single query to SLURM, at the first question. Its
// methods may be called concurrently.
type survey struct {
	scheduler *Scheduler
	all       func() (map[submit.JobID][]record, error)
	accounts  *accounts

	mu sync.Mutex
	// queues caches users' jobs.
	queues map[uint32]queue
}

// Survey returns a survey; its answers are as old as its first one.
func (s *Scheduler) Survey(ctx context.Context, jobs ...submit.Job) submit.Survey {
	return &survey{scheduler: s, accounts: s.accountsOf(jobs...), queues: map[uint32]queue{}, all: sync.OnceValues(func() (map[submit.JobID][]record, error) {
		out, err := s.runner.Run(ctx, "scontrol", "--all", "show", "job")
		if err != nil {
			return nil, unanswered(err)
		}
		all := map[submit.JobID][]record{}
		for _, r := range records(string(out)) {
			all[r.id()] = append(all[r.id()], r)
		}
		return all, nil
	})}
}

// Status is like Scheduler.Status.
func (v *survey) Status(ctx context.Context, job submit.Job) (submit.Status, error) {
	found, err := v.find(ctx, job)
	if errors.Is(err, errForgotten) {
		found, err = v.scheduler.findElsewhere(ctx, job)
	}
	return v.scheduler.judge(ctx, job, found, err, v.accounts)
}

// find finds the job's record. A comment of another user's job may look like one, so the answer
// about that job alone decides if there are several.
func (v *survey) find(ctx context.Context, job submit.Job) (record, error) {
	all, err := v.all()
	if err != nil {
		return record{}, err
	}
	found := all[job.ID]
	switch {
	case len(found) > 1:
		return v.scheduler.show(ctx, "", job)
	case len(found) == 1 && found[0].runs(job.Dir):
		return found[0], nil
	}
	return record{}, errForgotten
}
