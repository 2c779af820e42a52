package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"gonbatch/submit/report"
	"gonbatch/submit/stage"
)

func newVersionCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs}
	asJSON := addJSON(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		return report.Write(a.Out, *asJSON, report.Program{Version: report.Version, Submit: stage.Version(), Go: runtime.Version()})
	}
	return cmd
}
