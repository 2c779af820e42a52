package main

import (
	"github.com/spf13/cobra"

	"gonbatch/submit/report"
)

func newCancelCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a run's job",
		Long:  "cancel ends a run's job. The run directory stays; \"submit resume\" starts the run again.\n\n" + aboutRun,
		Args:  oneArg("RUN"),
	}
	addRunRoot(cmd)
	return reporting(a, cmd, func(cmd *cobra.Command, args []string) (report.Report, error) {
		runs, r, err := a.findRun(cmd, args[0])
		if err != nil {
			return nil, err
		}
		return runs.Cancel(cmd.Context(), r)
	})
}
