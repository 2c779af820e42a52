package main

import (
	"context"

	"github.com/spf13/cobra"

	"gonbatch/submit"
	"gonbatch/submit/run"
)

// submission makes a request of the runs: it submits a notebook, or the preflight's own.
type submission func(runs *run.Runs, ctx context.Context, req run.Request) error

// submit turns cmd's flags into a request, and makes it. The project's configuration file is found
// upward from start.
func (o *submitOptions) submit(cmd *cobra.Command, a *app, start string, do submission) error {
	cfg, err := a.loadConfig(cmd, start)
	if err != nil {
		return err
	}
	req, err := o.request(a, cfg)
	if err != nil {
		return cfg.Explain(err)
	}
	ctx, stop := submit.Interruptible(cmd.Context())
	defer stop()
	return submit.BlameInterrupt(ctx, cfg.Explain(do(a.runs(cmd, o.RunRoot), ctx, req)))
}

const preflightLong = `preflight runs a job of a few seconds with the options that your training will have. It prints the
host, CPUs, device and MPI of each rank, and runs one all-reduce inside a compiled program. It
succeeds if all ranks work together.`

func newPreflightCommand(a *app) *cobra.Command {
	opts := newSubmitOptions()
	cmd := &cobra.Command{
		Use:   "preflight [flags]",
		Short: "Check in seconds that the ranks of a job work together",
		Long:  preflightLong,
		Example: `  submit preflight --nodes 2 --tasks-per-node 4
  submit preflight --local --tasks 2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return opts.submit(cmd, a, ".", (*run.Runs).Preflight) },
	}
	opts.addFlags(cmd.Flags())
	return cmd
}
