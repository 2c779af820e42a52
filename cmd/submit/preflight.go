package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gonbatch/rundir"
)

const preflightLong = `preflight runs a job of a few seconds in the place of a training: with the options that the training will have. It prints, for each rank, its
host, CPUs, device and MPI, and does one all-reduce inside a compiled program. It succeeds if all ranks work together.`

// preflightNotebook calls distributed.Check.
//
//go:embed preflight.ipynb
var preflightNotebook []byte

func newPreflightCommand(a *app) *cobra.Command {
	opts := newSubmitOptions()
	cmd := &cobra.Command{
		Use:   "preflight [flags]",
		Short: "Check that the ranks of a job work together, in seconds",
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
			if opts.Notebook, err = writePreflight(opts.RunRoot); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return runSubmit(ctx, a, opts)
		},
	}
	opts.addFlags(cmd.Flags())
	return cmd
}

// writePreflight puts the notebook where the nodes see its folder too.
func writePreflight(runRoot string) (string, error) {
	folder := filepath.Join(runRoot, ".preflight")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", fmt.Errorf("preflight: %w (choose another folder on the shared file system with --run-root)", err)
	}
	path := filepath.Join(folder, "preflight.ipynb")
	return path, rundir.WriteFileAtomic(path, preflightNotebook, 0o666)
}
