package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newCancelCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a run's job",
		Long:  "cancel ends a run's job. The run directory stays; \"submit resume\" starts the run again.\n\n" + aboutRun,
		Args:  oneArg("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			runs, r, err := a.findRun(cmd, args[0])
			if err != nil {
				return err
			}
			job, ended, err := runs.Cancel(cmd.Context(), r)
			switch {
			case err != nil:
			case ended != nil:
				_, err = fmt.Fprintf(a.Out, "%s has ended: %s\n", job, ended)
			default:
				_, err = fmt.Fprintf(a.Out, "%s: cancelled\nrun directory: %s\n", job, r.Dir.Path())
			}
			return err
		},
	}
	addRunRoot(cmd)
	return cmd
}
