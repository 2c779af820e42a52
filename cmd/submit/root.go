package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"gonbatch/submit/run"
)

const rootLong = `submit compiles the main cells of a Go notebook into programs and runs them in order, on every
rank of a SLURM job, or on this machine with --local. The notebook is exported and compiled before
anything is queued.

The variables of a cell tagged "parameters" are the notebook's parameters: set them with -p, list
them with "submit params". Arguments after -- are passed to the programs.

Every option can also be set with a variable SUBMIT_<OPTION> (SUBMIT_TIME for --time), with a
submit.yaml in the notebook's folder or a folder above it, or with your own submit.yaml.
"submit config" shows each value and where it comes from.`

// newRootCommand returns the submit command with all its subcommands.
func newRootCommand(a *app) *cobra.Command {
	opts := newSubmitOptions()
	cmd := &cobra.Command{
		Use:   "submit [flags] notebook.ipynb [-- program args]",
		Short: "Run a Go notebook on a cluster, or on this machine",
		Long:  rootLong,
		Example: `  submit --local notebooks/mnist.ipynb
  submit --nodes 2 --time 30:00 notebooks/mnist.ipynb
  submit --nodes 2 -F notebooks/mnist.ipynb -- -epochs 3 -lr 1e-3`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			if err := opts.parseArgs(args, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			return opts.submit(cmd, a, filepath.Dir(opts.Path), (*run.Runs).Submit)
		}),
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	cmd.CompletionOptions.HiddenDefaultCmd = true
	opts.addFlags(cmd.Flags())
	cmd.AddCommand(newLogsCommand(a), newStatusCommand(a), newCancelCommand(a), newResumeCommand(a), newExportCommand(a), newConfigCommand(a),
		newVersionCommand(a), newKernelCommand(a), newParamsCommand(a), newCheckCommand(a), newPreflightCommand(a))
	cmd.AddCommand(newHiddenCommands(a)...)
	return cmd
}
