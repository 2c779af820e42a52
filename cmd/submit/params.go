package main

import (
	"github.com/spf13/cobra"

	"gonbatch/submit/report"
	"gonbatch/submit/stage"
)

func newParamsCommand(a *app) *cobra.Command {
	return reporting(a, &cobra.Command{
		Use:     "params notebook.ipynb",
		Short:   "List a notebook's parameters and flags",
		Example: "  submit params notebooks/mnist.ipynb",
		Args:    oneArg("notebook"),
	}, func(cmd *cobra.Command, args []string) (report.Report, error) {
		var nb stage.Notebook
		if err := nb.Open(args[0]); err != nil {
			return nil, err
		}
		return nb.Params(cmd.Context(), a.Shell)
	})
}
