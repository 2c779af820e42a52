package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"gonbatch/submit"
)

// plan is what a scheduler says about a job before it is queued.
type plan struct {
	expected submit.Expectation
	// refusal is why the job can't start; empty if it can, or if that isn't known.
	refusal submit.Refusal
	// misfit is why no partition of the job can ever run it, and limits is set if that is because
	// of their limits; "" if one can, or if that isn't known.
	misfit string
	limits bool
	// unknown is why the cluster has no such partition, and closed names the job's only partition
	// if that takes no jobs now.
	unknown, closed string
}

// planLimit is how long a scheduler may take to say something about a job before it is queued.
const planLimit = 5 * time.Second

// startPlan asks the scheduler about a prepared job, while the caller compiles it. The returned
// function waits for the answer. A job that can never run is an error, which ends the returned
// context. Nothing is asked about a job that the user will queue.
func (rs *Runs) startPlan(ctx context.Context, scheduler submit.Scheduler, spec submit.JobSpec, m Manner) (context.Context, func() (submit.Expectation, error)) {
	ctx, cancel := context.WithCancel(ctx)
	limited, stop := context.WithTimeout(ctx, planLimit)
	var p plan
	var asked, checked sync.WaitGroup
	planner, ok := scheduler.(submit.Planner)
	if _, elsewhere := spec.Passed["clusters"]; ok && !elsewhere && !m.NoSubmit && !m.planned {
		asked.Go(func() {
			var err error
			p.expected, err = planner.Expect(limited, spec)
			errors.As(err, &p.refusal)
			if _, waits := spec.Passed["dependency"]; waits {
				p.expected = submit.Expectation{} // It doesn't count other jobs' ends.
			}
		})
		asked.Go(func() {
			if cluster, err := planner.Cluster(limited); err == nil {
				p.misfit, p.limits = cluster.Misfit(spec)
				p.unknown, p.closed = cluster.Unknown(spec), cluster.Closed(spec)
			}
		})
	}
	var err error
	checked.Go(func() {
		asked.Wait()
		stop()
		if err = rs.checkPlan(p, spec); err != nil {
			cancel()
		}
	})
	return ctx, func() (submit.Expectation, error) {
		checked.Wait()
		return p.expected, err
	}
}

// decide has the scheduler decide what a job leaves open, and asks it about the job.
func (rs *Runs) decide(ctx context.Context, scheduler submit.Scheduler, asked submit.JobSpec, m Manner) (decided submit.JobSpec, expected submit.Expectation, err error) {
	if decided, err = scheduler.Prepare(ctx, asked, m.NoSubmit); err != nil {
		return decided, expected, err
	}
	_, planned := rs.startPlan(ctx, scheduler, decided, m)
	expected, err = planned()
	return decided, expected, err
}

// checkPlan refuses a job that can never run, and warns about one that can't start as things are.
// A scheduler may queue either, and not say a word. But which partition a job goes to may be the
// site's choice, and a quality of service may lift limits: then the scheduler decides.
func (rs *Runs) checkPlan(p plan, spec submit.JobSpec) error {
	chosen := spec.Partition != "" && spec.QOS == ""
	switch {
	case p.misfit != "" && (p.refusal.Reason != "" || p.limits && chosen):
		return submit.Usagef("%s", p.misfit)
	case p.refusal.Final && p.unknown != "":
		return submit.Usagef("%s", p.unknown)
	case p.refusal.Final:
		return submit.Usagef("the job can't be queued: %s", p.refusal.Reason)
	case p.misfit != "" && p.limits:
		rs.Warn("%s; the job may wait forever", p.misfit)
	case p.closed != "":
		rs.Warn("partition %s takes no jobs now: the job waits until it does", p.closed)
	case p.refusal.Reason != "":
		rs.Warn("as things are, the job can't start: %s", p.refusal.Reason)
	}
	return nil
}
