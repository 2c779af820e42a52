package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"gonbatch/submit/report"
	"gonbatch/submit/stage"
)

func newVersionCommand(a *app) *cobra.Command {
	return reporting(a, &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs}, func(*cobra.Command, []string) (report.Report, error) {
		return report.Program{Submit: stage.Version(), Go: runtime.Version()}, nil
	})
}
