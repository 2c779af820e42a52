package run

import (
	"context"
	"errors"
	"fmt"

	"gonbatch/submit"
	"gonbatch/submit/report"
)

// Manner is how the user wants to start a run.
type Manner struct {
	// NoSubmit only stages the run, and leaves queueing it to the user.
	NoSubmit bool
	// Follow shows rank 0's log until the job ends, as a run on this machine always does.
	Follow bool
	// JSON makes the report JSON.
	JSON bool
}

// started is a run that was handed to its scheduler, or that was only staged and has a zero job.
type started struct {
	scheduler submit.Scheduler
	spec      submit.JobSpec
	job       submit.Job
	// name is the run's name for a command line.
	name string
}

// attend reports a run that was started. It runs the programs of a local job, and follows a job on
// a cluster if it was asked to.
func (rs *Runs) attend(ctx context.Context, s started, m Manner) error {
	if err := report.Write(rs.Out, m.JSON, rs.describeStart(ctx, s, m)); err != nil {
		return err
	}
	foreground, here := s.scheduler.(submit.Foreground)
	_, isBatch := s.scheduler.(submit.Batch)
	switch {
	case here && !isBatch:
		return rs.runHere(ctx, foreground, s)
	case m.NoSubmit:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w; the job is queued all the same; cancel it with: %s", context.Cause(ctx), rs.command(s.name, "cancel"))
	case m.Follow:
		return rs.follow(ctx, s.scheduler, s.job, 0)
	}
	return nil
}

// describeStart describes a run that was started, with the user's next command.
func (rs *Runs) describeStart(ctx context.Context, s started, m Manner) report.Submission {
	r := report.Submission{
		Run: s.spec.RunDir.Name(), Directory: s.spec.RunDir.Path(), Scheduler: s.scheduler.Name(), Job: string(s.job.ID),
		Name: s.spec.Name, Nodes: s.spec.Nodes, Ranks: s.spec.Tasks(),
	}
	batch, isBatch := s.scheduler.(submit.Batch)
	switch {
	case isBatch && m.NoSubmit:
		r.Queue = batch.QueueCommand(s.spec)
	case isBatch && !m.Follow && ctx.Err() == nil:
		r.Follow = rs.command(s.name, "logs", "-f")
	}
	return r
}

// runHere runs the programs of a job that this process has accepted, records how it ended and lists
// its results. It returns an error unless the job succeeded.
func (rs *Runs) runHere(ctx context.Context, foreground submit.Foreground, s started) error {
	status, err := foreground.Run(ctx, s.spec)
	if recordErr := rs.recordEnd(s.job, status); recordErr != nil {
		return errors.Join(err, recordErr)
	}
	if err != nil {
		return fmt.Errorf("%w\nrun directory: %s", err, s.spec.RunDir.Path())
	}
	return describe(rs.Out, s.spec.RunDir)
}
