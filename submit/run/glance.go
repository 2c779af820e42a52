package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gonbatch/internal/forecast"
	"gonbatch/submit"
	"gonbatch/submit/estimate"
)

// Glance is how the user wants a short forecast of a queued job's training step. The zero value is
// no forecast.
type Glance struct {
	// Target is the GPU; "" is that of the job's type of GPUs.
	Target string
	// Time is how long the forecast may take; 0 is no forecast.
	Time time.Duration
	// Wait is set if the user waits for a forecast. Otherwise only a known one is printed.
	Wait bool
}

// check refuses options that mean nothing.
func (g Glance) check() error {
	if g.Time < 0 {
		return submit.Usagef("--forecast=%s: must be at least 0", g.Time)
	}
	if g.Target == "" {
		return nil
	}
	if _, err := forecast.Find(g.Target); err != nil {
		return submit.UsageError{Err: err}
	}
	return nil
}

// suits reports whether a forecast makes sense: the job begins with a training run of which each
// rank has a GPU. Cells before it would have to run first.
func (g Glance) suits(s Started) bool {
	return g.Time > 0 && s.Trains != nil && s.Spec.GPUs.Count > 0 && s.Spec.TasksPerNode == s.Spec.GPUs.Count
}

// glance prints in a line what a training step of a queued job takes of its GPUs; the command
// cancel cancels the job. It returns no errors: the job is queued.
func (rs *Runs) glance(ctx context.Context, s Started, g Glance, cancel string) {
	known, err := estimate.KnownTo(rs.Shell)
	if err != nil || !g.suits(s) {
		return
	}
	gpu, err := estimate.Target(g.Target, s.Spec.GPUs)
	if err == nil {
		err = estimate.NeedCompiler(rs.Shell, gpu)
	}
	if err != nil {
		known.SayOnce(rs.Shell, err)
		return
	}
	world := forecast.World{Target: gpu.Name, Nodes: s.Spec.Nodes, GPUsPerNode: s.Spec.GPUs.Count}
	r, err := known.Glance(ctx, rs.Shell, g.program(s), world, g.Wait)
	switch {
	case errors.Is(err, estimate.ErrSilent):
	case err != nil:
		fmt.Fprintf(rs.Err, "submit: no forecast: %v (submit tries this program again only with a longer --forecast)\n", err)
	case r.Refused() != nil:
		rs.Warn("%v; the job is queued anyway; cancel it with: %s", r.Refused(), cancel)
	default:
		fmt.Fprintf(rs.Err, "submit: %s\n", r.Line())
	}
}

// program is the job's program that trains.
func (g Glance) program(s Started) estimate.Program {
	return estimate.Program{
		Path: s.Spec.RunDir.Program(s.Trains.Name), Cell: *s.Trains, Dir: cmp.Or(s.Trains.Dir, s.Spec.WorkDir), Env: s.Spec.Env,
		Limits: estimate.Limits{Time: g.Time, PlainSteps: estimate.PlainSteps, TimeFlag: "forecast"},
	}
}
