package main

import (
	"context"
	"fmt"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/submit"
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
		script, err := runs.Preview(ctx, req)
		if err == nil {
			_, err = a.Out.Write(script)
		}
		return err
	}
	started, err := runs.Submit(ctx, req)
	if err != nil {
		return err
	}
	return attend(ctx, runs, started, o, o.command)
}

// attend says what became of a submission and what to do next by command, and stays with the job if
// that runs here, or that is asked for.
func attend(ctx context.Context, runs *run.Runs, s run.Started, o *submitOptions, command func(words ...string) string) error {
	dir := s.Spec.RunDir
	if batch, ok := s.Scheduler.(submit.Batch); ok && o.NoSubmit {
		queue := batch.QueueCommand(s.Spec)
		_, err := fmt.Fprintf(runs.Out, "run directory: %s\nqueue it with:  %s\n", dir.Path(), queue)
		return err
	}
	if _, ok := s.Scheduler.(submit.Foreground); ok {
		if err := runs.Attend(ctx, s); err != nil {
			return err
		}
		return run.Describe(runs.Out, dir)
	}
	fmt.Fprintf(runs.Out, "job %s: %s on %d nodes, %d ranks\nrun directory: %s\n", s.Job.ID, s.Spec.Name, s.Spec.Nodes, s.Spec.Tasks(), dir.Path())
	if ctx.Err() != nil {
		return fmt.Errorf("%w; the job is queued all the same; end it with: %s", context.Cause(ctx), command("cancel", string(s.Job.ID)))
	}
	if o.Follow {
		return runs.Attend(ctx, s)
	}
	_, err := fmt.Fprintf(runs.Out, "follow it:     %s\n", command("logs", "-f", string(s.Job.ID)))
	return err
}

// command is a submit command line for a person to type, that finds the same runs.
func (o *submitOptions) command(words ...string) string {
	if o.onCommandLine("run-root") {
		words = append(words, "--run-root", o.RunRoot)
	}
	return "submit " + shellescape.QuoteCommand(words)
}
