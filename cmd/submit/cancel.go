package main

import (
	"gonbatch/submit/report"

	"github.com/spf13/cobra"
)

func newCancelCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a run's job",
		Long:  "cancel ends a run's job. The run directory stays; \"submit resume\" starts the run again.\n\n" + aboutRun,
		Args:  oneArg("RUN"),
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		runs, r, err := a.findRun(cmd, args[0])
		if err != nil {
			return err
		}
		cancelled, err := runs.Cancel(cmd.Context(), r)
		if err != nil {
			return err
		}
		return report.Write(a.Out, *asJSON, cancelled)
	}
	addRunRoot(cmd)
	return cmd
}
