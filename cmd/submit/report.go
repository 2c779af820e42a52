package main

import (
	"github.com/spf13/cobra"

	"gonbatch/submit"
	"gonbatch/submit/report"
)

const jsonUsage = "print JSON, as docs/json.md describes it"

// addJSON declares --json.
func addJSON(cmd *cobra.Command) *bool { return cmd.Flags().Bool("json", false, jsonUsage) }

// reporting makes cmd print the report of do: as text, or as JSON with --json.
func reporting(a *app, cmd *cobra.Command, do func(cmd *cobra.Command, args []string) (report.Report, error)) *cobra.Command {
	asJSON := addJSON(cmd)
	cmd.RunE = interruptible(func(cmd *cobra.Command, args []string) error {
		r, err := do(cmd, args)
		if err != nil {
			return err
		}
		return report.Write(a.Out, *asJSON, r)
	})
	return cmd
}

// interruptible gives do a context that signals end, so that a command which holds locks releases
// them.
func interruptible(do func(cmd *cobra.Command, args []string) error) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := submit.Interruptible(cmd.Context())
		defer stop()
		cmd.SetContext(ctx)
		return submit.BlameInterrupt(ctx, do(cmd, args))
	}
}
