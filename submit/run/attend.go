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
	// planned is set for a job like another one that has been compared with the cluster.
	planned bool
	// quiet is set for a job that is followed with others.
	quiet bool
}

// Started is a run that was handed to its scheduler, or that was only staged and has a zero Job.
type Started struct {
	Scheduler submit.Scheduler
	Spec      submit.JobSpec
	Job       submit.Job
	// expected is when and where the job was expected to start; zero if that isn't known.
	expected submit.Expectation
	// name is the run's name for a command line.
	name string
}

// attend reports a run that was started. It runs the programs of a local job, and follows a job on
// a cluster if it was asked to.
func (rs *Runs) attend(ctx context.Context, s Started, m Manner) error {
	if err := report.Write(rs.Out, m.JSON, rs.describeStart(ctx, s, m)); err != nil {
		return err
	}
	foreground, here := s.Scheduler.(submit.Foreground)
	_, isBatch := s.Scheduler.(submit.Batch)
	switch {
	case here && !isBatch:
		return rs.runHere(ctx, foreground, s)
	case m.NoSubmit:
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w; the job is queued anyway; cancel it with: %s", context.Cause(ctx), rs.command(s.name, "cancel"))
	}
	if m.Follow {
		return rs.follow(ctx, s.Scheduler, s.Job, 0)
	}
	return nil
}

// describeStart describes a run that was started, with the user's next command.
func (rs *Runs) describeStart(ctx context.Context, s Started, m Manner) report.Submission {
	r := report.Submission{
		Run: s.Spec.RunDir.Name(), Directory: s.Spec.RunDir.Path(), Scheduler: s.Scheduler.Name(), Job: string(s.Job.ID),
		Name: s.Spec.Name, Nodes: s.Spec.Nodes, Ranks: s.Spec.Tasks(),
	}
	if e := s.expected; !e.Start.IsZero() {
		r.Expected = &report.Expected{Start: e.Start, Seconds: max(0, int(e.Start.Sub(rs.Now()).Seconds())), Nodes: e.Nodes, Partition: e.Partition}
	}
	batch, isBatch := s.Scheduler.(submit.Batch)
	switch {
	case isBatch && m.NoSubmit:
		r.Queue = batch.QueueCommand(s.Spec)
	case isBatch && !m.Follow && ctx.Err() == nil:
		r.Follow = rs.command(s.name, "logs", "-f")
	}
	return r
}

// runHere runs the programs of a job that this process has accepted, records how it ended and lists
// its results. It returns an error unless the job succeeded.
func (rs *Runs) runHere(ctx context.Context, foreground submit.Foreground, s Started) error {
	if err := rs.runForeground(ctx, foreground, s); err != nil {
		return err
	}
	return describe(rs.Out, s.Spec.RunDir)
}

func (rs *Runs) runForeground(ctx context.Context, foreground submit.Foreground, s Started) error {
	status, err := foreground.Run(ctx, s.Spec)
	if recordErr := rs.recordEnd(context.WithoutCancel(ctx), s.Job, status); recordErr != nil {
		return errors.Join(err, recordErr)
	}
	if err != nil {
		return fmt.Errorf("%w\nrun directory: %s", err, s.Spec.RunDir.Path())
	}
	return nil
}
