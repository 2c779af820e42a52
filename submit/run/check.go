package run

import (
	"context"
	"errors"
	"fmt"

	"gonbatch/internal/forecast"
	"gonbatch/submit"
	"gonbatch/submit/estimate"
	"gonbatch/submit/report"
	"gonbatch/submit/stage"
)

// CheckRequest is a request to check a notebook.
type CheckRequest struct {
	// Path is the notebook's file; Check opens it as Notebook, which has its options.
	Path     string
	Notebook stage.Notebook
	// Job has the programs' arguments; for a forecast, also their variables, nodes and GPUs.
	Job submit.JobSpec
	// Target is the GPU on which the training step is forecast; "" is no forecast.
	Target string
	estimate.Limits
}

// check refuses what can't be forecast.
func (req CheckRequest) check() error {
	if req.Target == "" {
		return nil
	}
	_, err := forecast.Find(req.Target)
	if req.Time < 0 {
		err = errors.Join(err, fmt.Errorf("--timeout=%s: must be at least 0", req.Time))
	}
	err = errors.Join(err, submit.CheckCount("nodes", req.Job.Nodes, 1), submit.CheckCount("gpus-per-node", req.Job.GPUs.Count, 1),
		submit.CheckCount("plain-steps", req.PlainSteps, 0), submit.CheckEnv("--env", req.Job.Env))
	if err != nil {
		return submit.UsageError{Err: err}
	}
	return nil
}

// Check does the parts of a job's submission that need no cluster and no run directory, and
// forecasts the job's training step. If submit would refuse the notebook, it returns the reason as
// an error, with what it has found so far.
func Check(ctx context.Context, shell submit.Shell, req CheckRequest) (check report.Check, err error) {
	if err := req.check(); err != nil {
		return check, err
	}
	if err := req.Notebook.Open(req.Path); err != nil {
		return check, err
	}
	check, err = req.Notebook.Check(ctx, shell, req.Job)
	if err != nil || req.Target == "" {
		return check, err
	}
	check.Forecast, err = req.forecast(ctx, shell)
	return check.Refused(err), err
}

// forecast runs the notebook's program up to its first training step.
func (req CheckRequest) forecast(ctx context.Context, shell submit.Shell) (*report.Forecast, error) {
	gpu, err := forecast.Find(req.Target)
	if err != nil {
		return nil, err
	}
	p, err := req.Notebook.Program(ctx, shell, req.Job)
	if err != nil {
		return nil, err
	}
	program := estimate.Program{Path: p.Path, Cell: p.Cell, Dir: p.Dir, Env: req.Job.Env, Limits: req.Limits}
	world := forecast.World{Target: gpu.Name, Nodes: req.Job.Nodes, GPUsPerNode: req.Job.GPUs.Count}
	f, err := estimate.Ask(ctx, shell, program, world)
	if err != nil {
		return nil, err
	}
	return &f, f.Refused()
}
