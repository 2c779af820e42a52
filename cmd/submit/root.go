package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gonbatch/submit"
	"gonbatch/submit/modules"
	"gonbatch/submit/rank"
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
  submit --nodes 2 --time 30m notebooks/mnist.ipynb
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
		newVersionCommand(a), newKernelCommand(a), newParamsCommand(a), newCheckCommand(a), newPreflightCommand(a), newNodesCommand(a), newListCommand(a), newTopCommand(a), newScalingCommand(a), newOpenCommand(a), newCompareCommand(a), newRerunCommand(a), newPruneCommand(a),
		newHoldCommand(a), newReleaseCommand(a), newRequeueCommand(a), newUpdateCommand(a))
	cmd.AddCommand(newHiddenCommands(a)...)
	return cmd
}

// newHiddenCommands returns the commands that are not for users: what a batch script becomes, what
// launchers start for each rank, and what submit starts to complete programs.
func newHiddenCommands(a *app) (all []*cobra.Command) {
	for name, run := range map[string]func(args []string) error{
		"job":               func(args []string) error { os.Exit(runJob(a.Shell, args)); return nil },
		submit.RankName:     func(args []string) error { os.Exit(rank.Runner{Shell: a.Shell}.Run(args)); return nil },
		modules.CommandName: func(args []string) error { return modules.Command(os.Stdin, a.Out, args) },
	} {
		all = append(all, &cobra.Command{Use: name, Hidden: true, DisableFlagParsing: true, RunE: func(_ *cobra.Command, args []string) error { return run(args) }})
	}
	return all
}
