package main

import (
	"context"
	"errors"
	"gonbatch/submit"
	"gonbatch/submit/stage"

	"github.com/spf13/cobra"
)

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
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.loadConfig(cmd, ".")
			if err != nil {
				return err
			}
			opts.config, opts.Follow, opts.Forecast = cfg, true, 0
			ctx, stop := submit.Interruptible(cmd.Context())
			defer stop()
			return runPreflight(ctx, a, opts)
		},
	}
	opts.addFlags(cmd.Flags())
	return cmd
}

// runPreflight submits the preflight's own notebook.
func runPreflight(ctx context.Context, a *app, o *submitOptions) (err error) {
	var clean func() error
	if o.Notebook, o.Job.WorkDir, clean, err = stage.Preflight(o.RunRoot, o.DryRun); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clean()) }()
	return runSubmit(ctx, a, o)
}
