package main

import (
	"github.com/spf13/cobra"

	"gonbatch/submit"
	"gonbatch/submit/report"
)

const checkLong = `check exports and compiles a notebook without making a job of it. It lists the steps that a job would have, what go vet
says, and what to know about the cells. It succeeds if the notebook would be submitted.`

func newCheckCommand(a *app) *cobra.Command {
	var opts exportOptions
	cmd := &cobra.Command{
		Use:     "check notebook.ipynb",
		Short:   "Check a notebook and list what a job of it would do",
		Long:    checkLong,
		Example: "  submit check notebooks/mnist.ipynb",
		Args:    oneArg("notebook"),
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := submit.Interruptible(cmd.Context())
		defer stop()
		nb, err := opts.notebook(args[0])
		if err != nil {
			return err
		}
		check, err := nb.Check(ctx, a.Shell)
		if err != nil {
			return err
		}
		return report.Write(a.Out, *asJSON, check)
	}
	opts.addFlags(cmd.Flags(), "check")
	return cmd
}
