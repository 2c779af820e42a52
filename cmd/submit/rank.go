package main

import (
	"os"

	"github.com/spf13/cobra"

	"gonbatch/submit"
	"gonbatch/submit/rank"
)

// newRankCommand returns the command that launchers start for each rank. It is not for users.
func newRankCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: submit.RankName, Hidden: true, DisableFlagParsing: true,
		Run: func(_ *cobra.Command, args []string) { os.Exit(rank.Runner{Shell: a.Shell}.Run(args)) },
	}
}
