package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/executed"
	"gonbatch/submit/export"
	"gonbatch/submit/local"
)

// stageRecorder puts into the run directory what writes executed.ipynb, and executed.ipynb as it is before the run.
func stageRecorder(o *submitOptions, p prepared, dir rundir.Dir) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := storeOf(dir).link(self, dir.Submit()); err != nil {
		return err
	}
	script, err := executed.RankScript(dir)
	if err != nil {
		return err
	}
	if err := rundir.WriteFileAtomic(dir.RankScript(), script, 0o700); err != nil {
		return err
	}
	nb, err := readNotebook(o.Notebook)
	if err != nil {
		return err
	}
	plan, err := newPlan(o, p.module, nb)
	if err != nil {
		return err
	}
	if p.reuse != nil {
		return p.reuse.stage(dir, nb, plan)
	}
	return executed.Prepare(dir, nb, plan)
}

// newPlan says what the run makes of the notebook's cells.
func newPlan(o *submitOptions, m *export.Module, nb *nbformat.Notebook) (executed.Plan, error) {
	input, err := o.origin()
	if err != nil {
		return executed.Plan{}, err
	}
	values, err := o.values()
	if err != nil {
		return executed.Plan{}, err
	}
	plan := executed.Plan{Input: input, Parameters: values, Version: "gonbatch " + ownVersion()}
	for _, step := range m.Steps {
		plan.Steps = append(plan.Steps, executed.Step{Name: step.Name, Cell: step.Cell})
	}
	for _, cell := range nb.Cells {
		isStep := slices.ContainsFunc(m.Steps, func(s export.Step) bool { return s.Cell == cell.Number })
		if export.Skips(cell) && !isStep {
			plan.LeftOut = append(plan.LeftOut, cell.Number)
		}
	}
	return plan, nil
}

// recordEnd keeps how a queued job ended, also in its executed notebook, if the job was killed with what writes that. An end that is
// only inferred is not kept: it can be inferred again, and SLURM may yet tell better. Nor is it that a run was lost.
func recordEnd(a *app, job submit.Job, status submit.Status) error {
	if status.Inferred {
		return nil
	}
	settled := executed.Settle(job.Dir, a.now, outcomeOf(status, job.Dir))
	if status.State == submit.Lost {
		return settled
	}
	return errors.Join(recordStatus(job, status, a.now()), settled)
}

// recordLocal runs the steps on this machine, and records them. A run that cannot be recorded runs all the same.
func recordLocal(ctx context.Context, a *app, spec submit.JobSpec) error {
	runner := local.Runner{Out: a.out, Err: a.err, Environ: a.environ}
	r, err := startRecording(a, spec.RunDir, "")
	if err != nil {
		fmt.Fprintln(a.err, "submit: warning:", err)
		return runner.Run(ctx, spec)
	}
	runner.Environ = append(slices.Clone(runner.Environ), rundir.EnvRecorder+"="+r.socket())
	runner.Drain = r.server.Drain
	err = runner.Run(ctx, spec)
	if endErr := r.end(outcomeOf(localStatus(err), spec.RunDir)); endErr != nil {
		fmt.Fprintln(a.err, "submit: warning:", endErr)
	}
	return err
}
