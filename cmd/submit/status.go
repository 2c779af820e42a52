package main

import (
	"github.com/spf13/cobra"

	"gonbatch/submit"
	"gonbatch/submit/report"
	"gonbatch/submit/run"
)

func newStatusCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Show a run's status, or list all runs",
		Long:  "status shows a run's status. Without RUN it lists all runs, and for a sweep its runs.\n\n" + aboutRun,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return submit.Usagef("submit status takes at most one RUN, not %d", len(args))
			}
			return nil
		},
	}
	addRunRoot(cmd)
	return reporting(a, cmd, a.status)
}

// status reports on one run, or lists all.
func (a *app) status(cmd *cobra.Command, args []string) (report.Report, error) {
	root, err := a.runRoot(cmd)
	if err != nil {
		return nil, err
	}
	runs := a.runs(cmd, root)
	if len(args) == 0 {
		return runs.List(cmd.Context(), run.Filter{})
	}
	if all := runs.OfSweep(args[0]); len(all) > 0 {
		return a.runs(cmd, all[0].Dir.Root()).List(cmd.Context(), run.Filter{Sweep: args[0]})
	}
	r, err := runs.Find(args[0])
	if err != nil {
		return nil, err
	}
	return runs.Report(cmd.Context(), r)
}
