package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gonbatch/internal/forecast"
	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/estimate"
	"gonbatch/submit/report"
	"gonbatch/submit/stage"
)

// forecastOptions are the world for which a check forecasts the training step.
type forecastOptions struct {
	forecast.World
	estimate.Limits
}

// patience is how long a program may take to come to its first training step: it may download its
// data.
const patience = 10 * time.Minute

// plainSteps is how often a program may change its variables without averaging gradients.
const plainSteps = 100

const timeFlag = "timeout"

func (o *forecastOptions) addFlags(fs *pflag.FlagSet) {
	config.NonEmpty(fs, &o.Target, "name", "target", "", "", "forecast the training step on this GPU: "+strings.Join(forecast.Names(), ", "))
	fs.IntVar(&o.Nodes, "nodes", 1, "with --target: number of nodes")
	fs.IntVar(&o.GPUsPerNode, "gpus-per-node", 1, "with --target: GPUs on each node")
	o.TimeFlag = timeFlag
	fs.DurationVar(&o.Time, timeFlag, patience, "with --target: end a program that has not come to its first training step by then; 0 for never")
	fs.IntVar(&o.PlainSteps, "plain-steps", plainSteps, "with --target: end a program that has made so many training steps without averaging gradients; 0 for never")
}

// check refuses what can't be forecast, before anything is compiled.
func (o *forecastOptions) check(fs *pflag.FlagSet) error {
	if o.Target == "" {
		for _, name := range []string{"nodes", "gpus-per-node", timeFlag, "plain-steps"} {
			if fs.Changed(name) {
				return submit.Usagef("--%s is for a forecast: give --target too, one of %s", name, strings.Join(forecast.Names(), ", "))
			}
		}
		return nil
	}
	gpu, err := forecast.Find(o.Target)
	if err != nil {
		return submit.UsageError{Err: err}
	}
	o.Target = gpu.Name
	if err := errors.Join(submit.CheckCount("nodes", o.Nodes, 1), submit.CheckCount("gpus-per-node", o.GPUsPerNode, 1), submit.CheckCount("plain-steps", o.PlainSteps, 0)); err != nil {
		return submit.UsageError{Err: err}
	}
	return nil
}

// forecast runs the notebook's program up to its first training step.
func (o *forecastOptions) forecast(ctx context.Context, a *app, nb stage.Notebook, job submit.JobSpec) (*report.Forecast, error) {
	p, err := nb.Program(ctx, a.Shell, job)
	if err != nil {
		return nil, err
	}
	program := estimate.Program{Path: p.Path, Cell: p.Cell, Dir: p.Dir, Limits: o.Limits}
	f, err := estimate.Ask(ctx, a.Shell, program, o.World)
	if err != nil {
		return nil, err
	}
	if known, err := knownForecasts(a.Shell); err == nil {
		_ = known.Keep(program, o.World, f, nil) // For the next submission.
	}
	return &f, f.Refused()
}
