package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"gonbatch/internal/forecast"
	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/estimate"
	"gonbatch/submit/report"
	"gonbatch/submit/stage"
)

// forecastOptions are the world for which a check forecasts the training step.
type forecastOptions struct{ forecast.World }

func (o *forecastOptions) addFlags(fs *pflag.FlagSet) {
	config.NonEmpty(fs, &o.Target, "name", "target", "", "", "forecast the training step on this GPU: "+strings.Join(forecast.Names(), ", "))
	fs.IntVar(&o.Nodes, "nodes", 1, "with --target: number of nodes")
	fs.IntVar(&o.GPUsPerNode, "gpus-per-node", 1, "with --target: GPUs on each node")
}

// check refuses what can't be forecast, before anything is compiled.
func (o *forecastOptions) check(fs *pflag.FlagSet) error {
	if o.Target == "" {
		if fs.Changed("nodes") || fs.Changed("gpus-per-node") {
			return submit.Usagef("--nodes and --gpus-per-node are for a forecast: give --target too, one of %s", strings.Join(forecast.Names(), ", "))
		}
		return nil
	}
	gpu, err := forecast.Find(o.Target)
	if err != nil {
		return submit.UsageError{Err: err}
	}
	o.Target = gpu.Name
	if err := errors.Join(submit.CheckCount("nodes", o.Nodes, 1), submit.CheckCount("gpus-per-node", o.GPUsPerNode, 1)); err != nil {
		return submit.UsageError{Err: err}
	}
	return nil
}

// forecast runs the notebook's program up to its first training step.
func (o *forecastOptions) forecast(ctx context.Context, a *app, nb stage.Notebook, job submit.JobSpec) (*report.Forecast, error) {
	p, err := nb.Program(ctx, a.Shell)
	if err != nil {
		return nil, err
	}
	p.Cell.Args = job.CellArgs(p.Cell)
	f, err := estimate.Ask(ctx, a.Shell, estimate.Program{Path: p.Path, Cell: p.Cell, Dir: p.Dir}, o.World)
	if err != nil {
		return nil, err
	}
	return &f, f.Refused()
}
