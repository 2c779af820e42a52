package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"gonbatch/submit"
	"gonbatch/submit/slurm"
)

func newCancelCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel JOB",
		Short: "End a job; its run directory stays",
		Args:  oneArg("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.findRun(cmd, args[0])
			if err != nil {
				return err
			}
			return runCancel(cmd.Context(), a, r)
		},
	}
	addRunRoot(cmd)
	return cmd
}

func runCancel(ctx context.Context, a *app, r run) error {
	if !r.queued() {
		return fmt.Errorf("run %s is not queued: a run on this machine is ended by Ctrl-C where it runs", r.dir.Name())
	}
	status, err := r.status(ctx, a)
	if err != nil {
		return err
	}
	if status.State.Ended() {
		_, err := fmt.Fprintf(a.out, "job %s has ended: %s\n", r.manifest.JobID, status)
		return err
	}
	if err := slurm.New(a.runner).Cancel(ctx, r.job()); err != nil {
		return err
	}
	if err := recordStatus(r.job(), submit.Status{State: submit.Cancelled}, a.now()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "job %s: cancelled\nrun directory: %s\n", r.manifest.JobID, r.dir.Path())
	return err
}
