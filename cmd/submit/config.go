package main

import (
	"path/filepath"

	"gonbatch/submit/report"

	"github.com/spf13/cobra"
)

func newConfigCommand(a *app) *cobra.Command {
	opts := newSubmitOptions()
	cmd := &cobra.Command{
		Use:   "config [flags] [notebook.ipynb]",
		Short: "Print each option's value and where it comes from",
		Args:  cobra.MaximumNArgs(1),
	}
	opts.addFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		start := "."
		if len(args) == 1 {
			start = filepath.Dir(args[0])
		}
		cfg, err := a.loadConfig(cmd, start)
		if err != nil {
			return err
		}
		return report.Write(a.Out, opts.JSON, report.Config{Settings: cfg.Settings, Files: append([]string{}, cfg.Files...)})
	}
	return cmd
}
