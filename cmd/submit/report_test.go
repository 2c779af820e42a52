package main

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestJSON: every command for users has --json.
func TestJSON(t *testing.T) {
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		switch {
		case cmd.Hidden || cmd.Name() == "completion" || cmd.Name() == "help":
			return
		case cmd.Name() == "kernel": // It only has subcommands.
		case cmd.Flags().Lookup("json") == nil:
			t.Errorf("%s has no --json: make it with reporting, and add its report to the shapes of package report", cmd.CommandPath())
		}
		for _, below := range cmd.Commands() {
			check(below)
		}
	}
	check(newRootCommand(&app{}))
}
