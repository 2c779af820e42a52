package main

import (
	"github.com/spf13/cobra"

	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/run"
)

func newLogsCommand(a *app) *cobra.Command {
	var req run.LogRequest
	cmd := &cobra.Command{
		Use:     "logs [-f] [--rank N] RUN",
		Short:   "Print a rank's log",
		Long:    "logs prints the log of rank 0, or of another rank with --rank.\n\n" + aboutRun,
		Example: "  submit logs -f 4711\n  submit logs --rank 1 mnist-20261121-101500-4f2a",
		Args:    oneArg("RUN"),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			runs, r, err := a.findRun(cmd, args[0])
			if err != nil {
				return err
			}
			return runs.Log(cmd.Context(), r, req)
		}),
	}
	cmd.Flags().BoolVarP(&req.Follow, "follow", "f", false, "show the log until the job ends, and exit with the job's status")
	config.IntVar(cmd.Flags(), &req.Rank, "rank", 0, "rank whose log to print")
	cmd.Flags().BoolVar(&req.JSON, "json", false, jsonUsage)
	addRunRoot(cmd)
	return cmd
}

// beforeDash checks the arguments before --; those after it are the programs'.
func beforeDash(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			args = args[:dash]
		}
		return check(cmd, args)
	}
}

// oneArg demands exactly one argument; what names it in the error.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return submit.Usagef("submit %s takes one %s, not %d (see submit %s --help)", cmd.Name(), what, len(args), cmd.Name())
		}
		return nil
	}
}
