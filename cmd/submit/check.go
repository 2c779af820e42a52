package main

import (
	"errors"

	"github.com/spf13/cobra"

	"gonbatch/submit"
	"gonbatch/submit/report"
)

const checkLong = `check exports and compiles a notebook without submitting it. It lists the cells that a job would
run, the findings of go vet, and anything in the notebook that may surprise you in a job. It
succeeds if submit would accept the notebook.`

func newCheckCommand(a *app) *cobra.Command {
	var opts exportOptions
	cmd := &cobra.Command{
		Use:     "check notebook.ipynb",
		Short:   "Check a notebook without submitting it",
		Long:    checkLong,
		Example: "  submit check notebooks/mnist.ipynb",
		Args:    oneArg("notebook"),
	}
	opts.addFlags(cmd.Flags(), "check")
	return reporting(a, cmd, func(cmd *cobra.Command, args []string) (report.Report, error) {
		ctx, stop := submit.Interruptible(cmd.Context())
		defer stop()
		nb, err := opts.notebook(args[0])
		if err != nil {
			return nil, err
		}
		check, err := nb.Check(ctx, a.Shell)
		if err == nil || check.Notebook == "" {
			return check, err
		}
		asJSON, flagErr := cmd.Flags().GetBool("json") // Report the findings before the error too.
		return nil, errors.Join(flagErr, report.Write(a.Out, asJSON, check), err)
	})
}
