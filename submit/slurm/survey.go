package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gonbatch/rundir"
	"gonbatch/submit"
)

// Survey answers questions about many jobs by asking SLURM once, at the first of them. Its methods may be called at once from several
// goroutines.
type Survey struct {
	scheduler *Scheduler
	all       func() ([]record, error)
}

var _ submit.Asker = (*Survey)(nil)

// Survey returns one, whose answers are as old as its first.
func (s *Scheduler) Survey(ctx context.Context) *Survey {
	return &Survey{s, sync.OnceValues(func() ([]record, error) {
		out, err := s.runner.Run(ctx, "scontrol", "--all", "show", "job")
		if err != nil {
			return nil, unanswered(err)
		}
		return records(string(out)), nil
	})}
}

// Status is Scheduler.Status.
func (v *Survey) Status(ctx context.Context, job submit.Job) (submit.Status, error) {
	found, err := v.find(job)
	if errors.Is(err, errForgotten) {
		found, err = v.scheduler.findElsewhere(ctx, job)
	}
	return v.scheduler.judge(ctx, job, found, err)
}

func (v *Survey) find(job submit.Job) (record, error) {
	all, err := v.all()
	if err != nil {
		return record{}, err
	}
	for _, r := range all {
		if r.id() == job.ID && r.runs(job.Dir) {
			return r, nil
		}
	}
	return record{}, errForgotten
}

// Find finds the job of a run by its script: a job that was queued by hand, or by a command that was killed before it could say so.
// Of several the last that has not ended counts, else the last. Where SLURM knows none but those in except the job's ID is "".
func (v *Survey) Find(ctx context.Context, dir rundir.Dir, except []string) (submit.Job, error) {
	all, err := v.all()
	if err != nil {
		return submit.Job{}, fmt.Errorf("look for the job of run %s: %w", dir.Name(), err)
	}
	job, active := submit.Job{Dir: dir}, false
	for _, r := range all {
		if !r.runs(dir) || slices.Contains(except, string(r.id())) {
			continue
		}
		status, err := r.status()
		if err != nil {
			return submit.Job{}, err
		}
		if now := !status.State.Ended(); now || !active {
			job.ID, active = r.id(), now
		}
	}
	if job.ID != "" {
		job.Cluster, err = v.scheduler.clusterName(ctx)
	}
	return job, err
}
