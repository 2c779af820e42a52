package main

import (
	"context"
	"fmt"
	"sync"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/submit"
	"gonbatch/submit/report"
	"gonbatch/submit/run"
)

// runSubmit submits a notebook, or shows its batch script.
func runSubmit(ctx context.Context, a *app, o *submitOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	req, err := o.request(a)
	if err != nil {
		return err
	}
	runs := a.runs(o.RunRoot)
	if o.DryRun {
		preview, err := runs.Preview(ctx, req)
		if err != nil {
			return err
		}
		return report.Write(a.Out, o.JSON, preview)
	}
	started, err := runs.Submit(ctx, req)
	if err != nil {
		return err
	}
	return attend(ctx, runs, started, o, o.command)
}

// attend reports a submission, with the next command that command builds. It runs the job if it is
// local, and follows it if asked to.
func attend(ctx context.Context, runs *run.Runs, s run.Started, o *submitOptions, command func(words ...string) string) error {
	said := s.Report()
	batch, isBatch := s.Scheduler.(submit.Batch)
	switch {
	case isBatch && o.NoSubmit:
		said.Queue = batch.QueueCommand(s.Spec)
	case isBatch && !o.Follow && ctx.Err() == nil:
		said.Follow = command("logs", "-f", said.Job)
	}
	if err := report.Write(runs.Out, o.JSON, said); err != nil {
		return err
	}
	switch {
	case !isBatch:
		if err := runs.Attend(ctx, s); err != nil {
			return err
		}
		return run.Describe(runs.Out, s.Spec.RunDir)
	case o.NoSubmit:
		return nil
	}
	cancel := command("cancel", said.Job)
	if o.Follow && ctx.Err() == nil {
		return besides(ctx, func(ctx context.Context) { o.glance(ctx, runs.Shell, s, cancel) }, func() error { return runs.Attend(ctx, s) })
	}
	o.glance(ctx, runs.Shell, s, cancel)
	if ctx.Err() != nil {
		return fmt.Errorf("%w; the job is queued all the same; cancel it with: %s", context.Cause(ctx), cancel)
	}
	return nil
}

// besides runs a function while another does its work, and ends it after that.
func besides(ctx context.Context, function func(context.Context), work func() error) error {
	ctx, end := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { function(ctx) })
	err := work()
	end()
	group.Wait()
	return err
}

// command returns a submit command line for the user to type that finds the same runs.
func (o *submitOptions) command(words ...string) string {
	if o.onCommandLine("run-root") {
		words = append(words, "--run-root", o.RunRoot)
	}
	return "submit " + shellescape.QuoteCommand(words)
}
