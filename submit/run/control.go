package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gonbatch/submit"
	"gonbatch/submit/report"
)

// Control holds, releases or requeues the job of a run.
func (rs *Runs) Control(ctx context.Context, r Run, verb submit.Verb) (report.Control, error) {
	return rs.control(ctx, r, func(c submit.Controller, r Run, status submit.Status) (string, error) {
		if why := verb.Refuses(status.State); why != "" {
			return "", fmt.Errorf("%s is %s: %s", r.Job(), status.State, why)
		}
		return verb.Done(), c.Control(ctx, r.Job(), verb)
	})
}

// Update changes options of a run's job, which names lists, one after the other. A resumed run
// keeps those that have changed.
func (rs *Runs) Update(ctx context.Context, r Run, names []string, change func(spec *submit.JobSpec, names []string) error) (report.Control, error) {
	return rs.control(ctx, r, func(c submit.Controller, r Run, _ submit.Status) (string, error) {
		asked, err := submit.ReadSpec(r.Dir)
		if err != nil {
			return "", err
		}
		decided, err := submit.ReadDecided(r.Dir)
		wanted := decided
		if err = errors.Join(err, change(&wanted, names)); err == nil {
			err = wanted.CheckFor(r.Scheduler)
		}
		if err != nil {
			return "", err
		}
		var done []string
		for _, name := range names {
			if err = c.Update(ctx, r.Job(), wanted, name); err != nil {
				break
			}
			done = append(done, name)
		}
		if len(done) > 0 {
			err = errors.Join(err, change(&asked, done), change(&decided, done), writeJob(r.Scheduler, r.Dir, asked, decided))
		}
		if err != nil && len(done) > 0 {
			err = fmt.Errorf("updated: %s; but: %w", strings.Join(done, ", "), err)
		}
		return "updated: " + strings.Join(done, ", "), err
	})
}

// control does something to the job of a run that has not ended. It holds the run's lock meanwhile.
func (rs *Runs) control(ctx context.Context, r Run, do func(submit.Controller, Run, submit.Status) (string, error)) (c report.Control, err error) {
	if err := r.Dir.CheckOwner(); err != nil {
		return c, err
	}
	controller, ok := r.Scheduler.(submit.Controller)
	if !ok {
		return c, submit.Usagef("run %s is a run of the scheduler %s, whose jobs can only be cancelled", r.Dir.Name(), r.Scheduler.Name())
	}
	lock, err := rs.lock(ctx, r.Dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	named := r.namedJob
	if r, err = rs.open(r.Dir); err != nil {
		return c, err
	}
	r, status, err := rs.look(ctx, r, nil)
	if err != nil {
		return c, err
	}
	job := r.Job()
	switch {
	case !r.taken():
		return c, fmt.Errorf("run %s is staged, and not queued: it has no job", r.Dir.Name())
	case named != "" && named != string(job.ID):
		return c, fmt.Errorf("job %s is not the run's job any more: that is job %s", named, job.ID)
	case status.State.Ended():
		return c, fmt.Errorf("%s has ended: %s; start it again with: %s", job, status, rs.command(r.word(), "resume"))
	}
	done, err := do(controller, r, status)
	return report.Control{Run: r.Dir.Name(), Directory: r.Dir.Path(), Job: string(job.ID), Done: done, Title: job.String()}, err
}
