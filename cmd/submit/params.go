package main

import (
	"gonbatch/submit/report"

	"github.com/spf13/cobra"
)

func newParamsCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "params notebook.ipynb",
		Short:   "List a notebook's parameters and flags",
		Example: "  submit params notebooks/mnist.ipynb",
		Args:    oneArg("notebook"),
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		nb, err := exportOptions{}.notebook(args[0])
		if err != nil {
			return err
		}
		params, err := nb.Params(cmd.Context(), a.Shell)
		if err != nil {
			return err
		}
		return report.Write(a.Out, *asJSON, params)
	}
	return cmd
}
