package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gonbatch/internal/rundir"
)

const preflightLong = `preflight runs a job of a few seconds with the options that your training will have. It prints the
host, CPUs, device and MPI of each rank, and runs one all-reduce inside a compiled program. It
succeeds if all ranks work together.`

// preflightNotebook calls distributed.Check.
//
//go:embed preflight.ipynb
var preflightNotebook []byte

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
			opts.config, opts.Follow = cfg, true
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return runPreflight(ctx, a, opts)
		},
	}
	opts.addFlags(cmd.Flags())
	return cmd
}

// runPreflight submits the notebook from a folder that the nodes see too: each user's own, in a run
// root of several. A dry run, which writes nothing, reads it from a folder that is gone afterwards.
func runPreflight(ctx context.Context, a *app, o *submitOptions) (err error) {
	folder, err := filepath.Abs(filepath.Join(o.RunRoot, fmt.Sprintf(".preflight-%d", os.Geteuid())))
	if err != nil {
		return err
	}
	o.workDir = folder
	if !o.DryRun {
		err = os.MkdirAll(folder, 0o700)
	} else if folder, err = os.MkdirTemp("", preflightPattern); err == nil {
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	}
	if err != nil {
		return fmt.Errorf("preflight: %w (choose another folder on the shared file system with --run-root)", err)
	}
	o.Notebook = filepath.Join(folder, "preflight.ipynb")
	if err := rundir.WriteFileAtomic(o.Notebook, preflightNotebook, 0o600); err != nil {
		return err
	}
	return runSubmit(ctx, a, o)
}
