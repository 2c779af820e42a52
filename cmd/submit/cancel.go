package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/slurm"
)

func newCancelCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a run's job",
		Long:  "cancel ends a run's job. The run directory stays; \"submit resume\" starts the run again.\n\n" + aboutRun,
		Args:  oneArg("RUN"),
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

// runCancel ends a job, and keeps that. A job that was still waiting has ended then; of one that ran SLURM says so later. Where
// nothing can be written, as on a full disk, the job is ended all the same.
func runCancel(ctx context.Context, a *app, r run) error {
	lock, err := a.lock(ctx, r.dir)
	switch {
	case ctx.Err() != nil:
		return err
	case err != nil:
		a.warnUnlessForbidden(err)
	default:
		defer func() { a.warnUnlessForbidden(lock.Release()) }()
	}
	if r, err = openRun(r.dir); err != nil {
		return err
	}
	r, status, err := r.look(ctx, a, nil)
	if err != nil {
		return err
	}
	if !r.queued() {
		return errors.Join(r.unasked, r.notQueued())
	}
	if status.State.Ended() {
		_, err := fmt.Fprintf(a.out, "job %s has ended: %s\n", r.manifest.JobID, status)
		return err
	}
	if err := slurm.New(a.runner).Cancel(ctx, r.job()); err != nil {
		return err
	}
	a.warnUnlessForbidden(r.recordCancel(ctx, a))
	_, err = fmt.Fprintf(a.out, "job %s: cancelled\nrun directory: %s\n", r.manifest.JobID, r.dir.Path())
	return err
}

// notQueued says why there is nothing to cancel.
func (r run) notQueued() error {
	if r.staged() {
		return fmt.Errorf("run %s is staged, not queued as far as is known here: there is nothing to cancel", r.dir.Name())
	}
	return fmt.Errorf("run %s is not queued: a run on this machine is ended by Ctrl-C where it runs", r.dir.Name())
}

// recordCancel keeps that the job was cancelled. Until its last processes are gone it may yet end otherwise.
func (r run) recordCancel(ctx context.Context, a *app) error {
	status, err := slurm.New(a.runner).Status(ctx, r.job())
	if err == nil && status.State.Ended() && !status.Inferred {
		return recordEnd(a, r.job(), status)
	}
	return updateJob(r.job(), func(m *rundir.Manifest) { m.State, m.Reason = string(submit.Cancelled), "" })
}
