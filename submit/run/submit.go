package run

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path/filepath"

	"gonbatch/data"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/export"
	"gonbatch/submit/export/nbcell"
	"gonbatch/submit/report"
	"gonbatch/submit/stage"
)

// Request is a request to submit a notebook.
type Request struct {
	// Path is the notebook's file; Submit opens it as Notebook, which has its options.
	Path     string
	Notebook stage.Notebook
	// Job is the job that the user asks for. Submit fills in what follows from the notebook and the
	// run.
	Job       submit.JobSpec
	Scheduler submit.Scheduler
	// From is the cell to start from: the results of the cells before it come from an earlier run,
	// the notebook's last one unless FromRun names another. "" runs all cells.
	From, FromRun string
	// Sweep asks for many runs.
	Sweep Sweep
	// After are runs that the job waits for.
	After After
	// Kit is what a preflight checks GPUs with.
	Kit stage.GPUKit
	// DryRun only reports the job with its batch script.
	DryRun bool
	Manner
	// Options are the effective options, for the manifest.
	Options map[string]any
}

// check refuses options that mean nothing, or do not go together.
func (req Request) check() error {
	switch {
	case req.DryRun && req.NoSubmit:
		return submit.Usagef("--dry-run writes nothing and --no-submit writes everything: give one of them")
	case req.FromRun != "" && req.From == "":
		return submit.Usagef("--from-run=%s needs --from: add --from CELL, the cell to start at", req.FromRun)
	case req.From != "" && len(req.Notebook.Cells) > 0:
		return submit.Usagef("--from and --cell both choose cells: give only one of them")
	}
	return nil
}

// Submit submits a notebook and attends to its run, or reports the job that it would submit.
func (rs *Runs) Submit(ctx context.Context, req Request) error {
	if err := req.check(); err != nil {
		return err
	}
	if err := rs.WaitFor(ctx, req.After, req.Scheduler, &req.Job); err != nil {
		return err
	}
	if err := req.Notebook.Open(req.Path); err != nil {
		return err
	}
	if s := req.Sweep; len(s.Axes) > 0 || s.Scaling+s.Extend != "" || s.Random != 0 {
		return rs.sweep(ctx, req)
	}
	if req.DryRun {
		p, err := rs.dryRun(ctx, req)
		if err != nil {
			return err
		}
		return report.Write(rs.Out, req.JSON, p)
	}
	s, err := rs.start(ctx, req)
	if err != nil {
		return err
	}
	s.name = string(s.Job.ID)
	return rs.attend(ctx, s, req.Manner)
}

// Preflight submits the preflight's own notebook, and follows its job.
func (rs *Runs) Preflight(ctx context.Context, req Request) (err error) {
	if err := req.check(); err != nil {
		return err
	}
	var clean func() error
	if req.Path, req.Job.WorkDir, clean, err = stage.Preflight(rs.Root, req.Kit, req.DryRun); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clean()) }()
	req.Follow = true
	return rs.Submit(ctx, req)
}

// dryRun returns a notebook's job with its batch script. It writes nothing, and compiles nothing.
func (rs *Runs) dryRun(ctx context.Context, req Request) (p report.Preview, err error) {
	_, _, decided, err := rs.preview(ctx, req, true)
	if err != nil {
		return p, err
	}
	batch, ok := req.Scheduler.(submit.Batch)
	if !ok {
		return p, submit.Usagef("a job of the scheduler %s has no batch script", req.Scheduler.Name())
	}
	script, err := batch.Script(decided)
	return report.Preview{
		Scheduler: batch.Name(), Name: decided.Name, Nodes: decided.Nodes, Ranks: decided.Tasks(), Script: string(script),
	}, err
}

// start exports, compiles and stages a notebook and hands it to its scheduler. It checks everything
// that it can refuse first, before it writes anything.
func (rs *Runs) start(ctx context.Context, req Request) (s Started, err error) {
	module, asked, decided, err := rs.preview(ctx, req, req.NoSubmit)
	if err != nil {
		return s, err
	}
	if err := stage.WithRoom(rs.Shell, rs.Root, func() error { return rundir.CheckRoot(rs.Root) }); err != nil {
		return s, err
	}
	var reuse *stage.Reuse
	if req.From != "" {
		if reuse, err = stage.FindReuse(req.Notebook, module, asked, rs.Root, req.From, req.FromRun); err != nil {
			return s, err
		}
	}
	building, planned := rs.startPlan(ctx, req.Scheduler, decided, req.Manner)
	p, err := rs.prepare(building, req, module, &asked, &decided)
	expected, refused := planned()
	if err := cmp.Or(refused, err); err != nil {
		return s, err
	}
	p.Reuse = reuse
	draft, err := rs.draft(ctx, req, p, &asked, &decided)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, draft.Release()) }()
	s, err = rs.handOver(ctx, req.Scheduler, decided, req.NoSubmit)
	s.expected = expected
	return s, err
}

// prepare compiles a notebook's programs and fetches what they need.
func (rs *Runs) prepare(ctx context.Context, req Request, m *export.Module, asked, decided *submit.JobSpec) (p stage.Prepared, err error) {
	if p, err = stage.Prepare(ctx, rs.Shell, req.Notebook, m, asked.Platform); err != nil {
		return p, err
	}
	if err := stage.FetchDatasets(ctx, rs.Shell, p.Module.Imports); err != nil {
		return p, err
	}
	return p, p.TakeOneDNN(ctx, rs.Shell, asked, decided)
}

// draft creates the run directory and keeps its lock, so that nobody else can hand the run over
// meanwhile. It completes the job with what follows from the directory.
func (rs *Runs) draft(ctx context.Context, req Request, p stage.Prepared, asked, decided *submit.JobSpec) (draft *rundir.Draft, err error) {
	err = stage.WithRoom(rs.Shell, rs.Root, func() (err error) {
		if draft, err = p.Stage(ctx, rs.Shell, rs.Root, asked.Name); err != nil {
			return err
		}
		for _, spec := range []*submit.JobSpec{asked, decided} {
			spec.RunDir, spec.PluginDir = draft.Run, p.PluginDir
		}
		err = rs.describe(ctx, req, p, draft.Dir, *asked, *decided)
		if err == nil {
			err = draft.Publish()
		}
		if err != nil {
			return errors.Join(err, draft.Discard())
		}
		return nil
	})
	return draft, err
}

// preview returns the job as far as it is known before there is a run directory, as it was asked
// for and as the scheduler decided it. It refuses a job that cannot work.
func (rs *Runs) preview(ctx context.Context, req Request, preview bool) (m *export.Module, asked, decided submit.JobSpec, err error) {
	if m, err = req.Notebook.Export(ctx, rs.Shell); err != nil {
		return m, asked, decided, err
	}
	if asked, err = rs.complete(ctx, req, m); err != nil {
		return m, asked, decided, err
	}
	if err := req.Notebook.CheckArgs(rs.Shell, m, asked); err != nil {
		return m, asked, decided, err
	}
	if asked.Tasks() > 1 {
		rs.warnUndistributed(m, asked.Tasks())
	}
	decided, err = req.Scheduler.Prepare(ctx, asked, preview)
	return m, asked, decided, err
}

// warnUndistributed warns about programs in which every rank does all of the work.
func (rs *Runs) warnUndistributed(m *export.Module, ranks int) {
	for _, cell := range m.Undistributed() {
		rs.Warn("%s, cell %s: uses GoMLX without package gonbatch/distributed, so each of the %d ranks computes everything by itself; "+
			"train with package trainer or distributed, or run it once: tag the cell %s", m.Notebook, cell.Label(), ranks, nbcell.OnceTags[0])
	}
}

// complete fills in what follows from the notebook, with an example of a run directory.
func (rs *Runs) complete(ctx context.Context, req Request, m *export.Module) (spec submit.JobSpec, err error) {
	spec = req.Job
	root, err := filepath.Abs(rs.Root)
	if err != nil {
		return spec, err
	}
	if spec.WorkDir, err = filepath.Abs(cmp.Or(spec.WorkDir, filepath.Dir(req.Notebook.File.Path))); err != nil {
		return spec, err
	}
	spec.Name = cmp.Or(spec.Name, req.Notebook.Name())
	spec.RunDir = rundir.At(filepath.Join(root, rundir.Slug(spec.Name)+"-DATE-TIME-XXXX"))
	spec.Platform = cmp.Or(spec.Platform, req.Scheduler.Platform(spec))
	spec.Cells = stage.Cells(m, spec.WorkDir, rs.Getenv("HOME"))
	spec.DataDir, spec.Record = data.Dir(rs.Getenv), true
	if err := spec.CheckFor(req.Scheduler); err != nil {
		return spec, err
	}
	if err := rs.CheckSecrets(spec); err != nil {
		return spec, err
	}
	if spec.OneDNN, err = stage.OneDNN(ctx, rs.Shell, spec); err != nil {
		return spec, err
	}
	spec.PluginDir, err = stage.PreviewPlugin(rs.Shell, spec.Platform)
	return spec, err
}

// describe writes the batch script, the job and the manifest into dir, where the run is being
// staged.
func (rs *Runs) describe(ctx context.Context, req Request, p stage.Prepared, dir rundir.Dir, asked, decided submit.JobSpec) error {
	if err := writeJob(req.Scheduler, dir, asked, decided); err != nil {
		return err
	}
	m, err := p.Manifest(ctx, rs.Shell, dir, decided)
	if err != nil {
		return err
	}
	m.Scheduler, m.Options = req.Scheduler.Name(), maps.Clone(req.Options)
	if len(req.Notebook.Cells) > 0 && m.Options != nil {
		m.Options[cellOption] = req.Notebook.Cells
	}
	return m.Write(dir)
}

// writeJob writes the script that starts the job into dir, and the job.
func writeJob(scheduler submit.Scheduler, dir rundir.Dir, asked, decided submit.JobSpec) error {
	if batch, ok := scheduler.(submit.Batch); ok {
		script, err := batch.Script(decided)
		if err != nil {
			return err
		}
		if err := rundir.WriteFileAtomic(dir.Script(), script, 0o700); err != nil {
			return err
		}
	}
	return submit.WriteSpec(dir, asked, decided)
}

// handOver hands a run to its scheduler and records the job, unless that is left to the user. The
// caller must hold the run's lock.
func (rs *Runs) handOver(ctx context.Context, scheduler submit.Scheduler, spec submit.JobSpec, noSubmit bool) (s Started, err error) {
	s = Started{Scheduler: scheduler, Spec: spec}
	rs.WarnUnlessForbidden(rs.remember(spec.RunDir.Root()))
	if noSubmit {
		return s, nil
	}
	if s.Job, err = scheduler.Submit(ctx, spec); err != nil {
		return s, err
	}
	return s, rs.recordJob(context.WithoutCancel(ctx), s.Job)
}
