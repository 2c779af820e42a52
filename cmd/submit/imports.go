package main

import (
	"os"

	"github.com/spf13/cobra"

	"gonbatch/submit/modules"
)

// newImportsCommand returns the command by which submit completes programs. It is not for users.
func newImportsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: modules.CommandName, Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return modules.Command(os.Stdin, a.Out, args) },
	}
}
