package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"gonbatch/submit/stage"
)

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.Out, "submit %s, %s\n", stage.Version(), runtime.Version())
			return err
		},
	}
}
