package slurm

import (
	"context"
	"errors"
	"fmt"

	"gonbatch/submit"
)

// Cancel ends the job, if its id still belongs to the run: by now, or on this cluster, it may be
// another job's. A job that has ended, or that its cluster has forgotten, is not an error; one on a
// cluster that cannot be asked is.
func (s *Scheduler) Cancel(ctx context.Context, job submit.Job) error {
	_, err := s.show(ctx, "", job)
	cluster := ""
	if errors.Is(err, errForgotten) {
		_, err = s.findElsewhere(ctx, job)
		cluster = job.Cluster
	}
	if errors.Is(err, errForgotten) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cancel job %s: %w", job.ID, err)
	}
	_, err = s.runner.Run(ctx, "scancel", clusterArgs(cluster, string(job.ID))...)
	if err == nil || unknownJob(err) || hasEnded(err) {
		return nil
	}
	return fmt.Errorf("cancel job %s: %w", job.ID, err)
}

// hasEnded reports whether a command's error says that the job has ended.
func hasEnded(err error) bool { return said(err, "already completing or completed") }
