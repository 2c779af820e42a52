package main

import (
	"os"

	"github.com/spf13/cobra"

	"gonbatch/submit"
	"gonbatch/submit/modules"
	"gonbatch/submit/rank"
)

// newHiddenCommands returns the commands that are not for users: what a batch script becomes, what
// launchers start for each rank, and what submit starts to complete programs.
func newHiddenCommands(a *app) (all []*cobra.Command) {
	for name, run := range map[string]func(args []string) error{
		"job":               func(args []string) error { os.Exit(runJob(a.Shell, args)); return nil },
		submit.RankName:     func(args []string) error { os.Exit(rank.Runner{Shell: a.Shell}.Run(args)); return nil },
		modules.CommandName: func(args []string) error { return modules.Command(os.Stdin, a.Out, args) },
	} {
		all = append(all, &cobra.Command{Use: name, Hidden: true, DisableFlagParsing: true, RunE: func(_ *cobra.Command, args []string) error { return run(args) }})
	}
	return all
}
