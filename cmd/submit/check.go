package main

import (
	"errors"

	"github.com/spf13/cobra"

	"gonbatch/submit"
	"gonbatch/submit/report"
	"gonbatch/submit/stage"
)

const checkLong = `check exports and compiles a notebook without submitting it. It lists the cells that a job would
run, the findings of go vet, and anything in the notebook that may surprise you in a job. It
succeeds if submit would accept the notebook.

With --target it also says what the training step would take on GPUs, before anything is queued:
memory, operations, the bytes that the ranks reduce, and how long it must take at least. No GPU is
needed. The cell that trains runs on this machine up to its first training step, as rank 0 of the
world that you give, and XLA compiles that step for the GPU (the first time, its compiler of 257 MB
is downloaded). A step that does not fit is refused, with the largest batch size that does.

The first training step is the first program that averages gradients: by package trainer, or by
World.Optimizer. A notebook that trains without them would train to its end here, so its program is
ended after --plain-steps of its own steps, or when --timeout has passed.`

func newCheckCommand(a *app) *cobra.Command {
	var nb stage.Notebook
	var target forecastOptions
	cmd := &cobra.Command{
		Use:     "check [flags] notebook.ipynb [-- program args]",
		Short:   "Check a notebook without submitting it",
		Long:    checkLong,
		Example: "  submit check notebooks/mnist.ipynb\n  submit check --target h100 --nodes 2 --gpus-per-node 4 notebooks/mnist.ipynb -- -batch 4096",
		Args:    beforeDash(oneArg("notebook")),
	}
	addNotebookFlags(cmd.Flags(), &nb, "check")
	target.addFlags(cmd.Flags())
	return reporting(a, cmd, func(cmd *cobra.Command, args []string) (report.Report, error) {
		ctx, stop := submit.Interruptible(cmd.Context())
		defer stop()
		if err := target.check(cmd.Flags()); err != nil {
			return nil, err
		}
		if err := nb.Open(args[0]); err != nil {
			return nil, err
		}
		job := submit.JobSpec{Args: args[1:]}
		check, err := nb.Check(ctx, a.Shell, job)
		if err == nil && target.Target != "" {
			check.Forecast, err = target.forecast(ctx, a, nb, job)
			check = check.Refused(err)
		}
		if err == nil || check.Notebook == "" {
			return check, err
		}
		asJSON, flagErr := cmd.Flags().GetBool("json") // Report the findings before the error too.
		return nil, errors.Join(flagErr, report.Write(a.Out, asJSON, check), err)
	})
}
