package main

import (
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newConfigCommand(a *app) *cobra.Command {
	opts := newSubmitOptions()
	cmd := &cobra.Command{
		Use:   "config [flags] [notebook.ipynb]",
		Short: "Print each option's value and where it comes from",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			start := "."
			if len(args) == 1 {
				start = filepath.Dir(args[0])
			}
			return runConfig(a, cmd, start)
		},
	}
	opts.addFlags(cmd.Flags())
	return cmd
}

func runConfig(a *app, cmd *cobra.Command, start string) error {
	cfg, err := a.loadConfig(cmd, start)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, s := range cfg.Settings {
		fmt.Fprintf(table, "%s:\t%s\t# %s\n", s.Key, s.Value, s.Origin)
	}
	return table.Flush()
}
