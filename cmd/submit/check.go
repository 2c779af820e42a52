package main

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gonbatch/internal/forecast"
	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/estimate"
	"gonbatch/submit/report"
	"gonbatch/submit/run"
)

const checkLong = `check exports and compiles a notebook without submitting it. It lists the cells that a job would
run, the findings of go vet, and anything in the notebook that may surprise you in a job. It
succeeds if submit would accept the notebook.

With --target, it also shows what the training step would take on GPUs, before anything is queued:
memory, operations, the bytes that the ranks reduce, and a lower bound for its time. No GPU is
needed. The cell that trains runs on this machine up to its first training step, as rank 0 of the
world that you give, and XLA compiles that step for the GPU (the first time, its compiler of 257 MB
is downloaded). If the step does not fit, the check fails and names the largest batch size that
does.

The first training step is the first program that averages gradients, with package trainer or
World.Optimizer. A notebook that trains without them would train to the end here, so its program is
ended after --plain-steps of its own steps, or after --timeout.`

// checkOptions are the options of a check, from the command line, and for a forecast from the
// environment and the configuration files too.
type checkOptions struct {
	run.CheckRequest
	Env []string
}

func newCheckCommand(a *app) *cobra.Command {
	opts := checkOptions{CheckRequest: run.CheckRequest{Job: submit.JobSpec{Nodes: 1, GPUs: submit.GPUs{Count: 1}}}}
	cmd := &cobra.Command{
		Use:     "check [flags] notebook.ipynb [-- program args]",
		Short:   "Check a notebook without submitting it",
		Long:    checkLong,
		Example: "  submit check notebooks/mnist.ipynb\n  submit check --target h100 --nodes 2 --gpus-per-node 4 notebooks/mnist.ipynb -- -batch 4096",
		Args:    beforeDash(oneArg("notebook")),
	}
	addNotebookFlags(cmd.Flags(), &opts.Notebook, "check")
	opts.addFlags(cmd.Flags())
	return reporting(a, cmd, func(cmd *cobra.Command, args []string) (report.Report, error) {
		opts.Path, opts.Job.Args = args[0], args[1:]
		if err := opts.load(cmd, a); err != nil {
			return nil, err
		}
		check, err := run.Check(cmd.Context(), a.Shell, opts.CheckRequest)
		if err == nil || check.Notebook == "" {
			return check, err
		}
		asJSON, flagErr := cmd.Flags().GetBool("json") // Report the findings before the error too.
		return nil, errors.Join(flagErr, report.Write(a.Out, asJSON, check), err)
	})
}

// patience is how long a program may take to come to its first training step: it may download its
// data.
const patience = 10 * time.Minute

// forForecast marks a flag without effect unless --target is given.
const forForecast = "gonbatch_for_forecast"

func (o *checkOptions) addFlags(fs *pflag.FlagSet) {
	config.NonEmpty(fs, &o.Target, "name", "target", "", "", "forecast the training step on this GPU: "+strings.Join(forecast.Names(), ", "))
	config.IntVar(fs, &o.Job.Nodes, "nodes", o.Job.Nodes, "with --target: number of nodes")
	fs.Var(&o.Job.GPUs, "gpus-per-node", "with --target: GPUs on each node")
	fs.StringArrayVar(&o.Env, "env", nil, "with --target: set environment variable NAME=VALUE for the program; repeatable")
	fs.DurationVar(&o.Time, "timeout", patience, "with --target: end a program that has not reached its first training step by then; 0 for never")
	config.IntVar(fs, &o.PlainSteps, "plain-steps", estimate.PlainSteps, "with --target: end a program that has taken this many training steps without averaging gradients; 0 for never")
	config.Mark(fs, forForecast, "nodes", "gpus-per-node", "env", "timeout", "plain-steps")
	fs.SetNormalizeFunc(sbatchName)
}

// load takes the job's nodes, GPUs and variables for a forecast from where a submission takes them.
func (o *checkOptions) load(cmd *cobra.Command, a *app) (err error) {
	if o.Target == "" {
		if names := config.GivenWith(cmd.Flags(), forForecast); len(names) > 0 {
			return submit.Usagef("%s: only for a forecast; give --target too, one of %s", strings.Join(names, ", "), strings.Join(forecast.Names(), ", "))
		}
		return nil
	}
	cfg, err := a.loadSome(cmd, filepath.Dir(o.Path), "nodes", "gpus-per-node", "env")
	if err != nil {
		return err
	}
	a.printFiles(cfg)
	o.Job.Env, err = submit.ParseEnv(o.Env)
	return err
}
