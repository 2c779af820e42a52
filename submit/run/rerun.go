package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/executed"
	"gonbatch/submit/stage"
)

// cellOption is the key of the picked cells in the options of a manifest.
const cellOption = "cell"

// Rerun runs a run's programs again, as another run with the same options, with changes.
func (rs *Runs) Rerun(ctx context.Context, r Run, c Changes, m Manner) error {
	s, err := rs.rerun(ctx, r, c, m)
	if err != nil {
		return err
	}
	s.name = string(s.Job.ID)
	return rs.attend(ctx, s, m)
}

// RerunLatest submits a run's notebook as it is now, with the parameters and options of the run,
// with changes. params are more parameters NAME=VALUE.
func (rs *Runs) RerunLatest(ctx context.Context, r Run, c Changes, params []string, m Manner) error {
	spec, given, err := rs.jobAgain(r, c)
	if err != nil {
		return err
	}
	spec.RunDir, spec.Cells, spec.PluginDir, spec.OneDNN = rundir.Dir{}, nil, "", ""
	req := Request{Path: r.Manifest.Notebook.Path, Job: spec, Scheduler: r.Scheduler, Options: r.Manifest.Options, Manner: m}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		req.Notebook.ParamValues = append(req.Notebook.ParamValues, name+"="+given[name])
	}
	req.Notebook.ParamValues = append(req.Notebook.ParamValues, params...)
	cells, _ := r.Manifest.Options[cellOption].([]any)
	for _, cell := range cells {
		req.Notebook.Cells = append(req.Notebook.Cells, fmt.Sprint(cell))
	}
	return rs.Submit(ctx, req)
}

func (rs *Runs) rerun(ctx context.Context, r Run, c Changes, m Manner) (s Started, err error) {
	asked, again, err := rs.again(ctx, r, c)
	if err != nil {
		return s, err
	}
	decided, expected, err := rs.decide(ctx, r.Scheduler, asked, m)
	if err != nil {
		return s, err
	}
	var draft *rundir.Draft
	err = stage.WithRoom(rs.Shell, rs.Root, func() (err error) {
		if draft, err = again.Stage(ctx, rs.Shell, rs.Root, asked.Name); err != nil {
			return err
		}
		asked.RunDir, decided.RunDir = draft.Run, draft.Run
		m := rundir.Manifest{
			Name: draft.Run.Name(), Notebook: again.Manifest.Notebook, Part: again.Manifest.Part, Git: again.Manifest.Git, SourcesSHA256: again.Manifest.SourcesSHA256,
			Cells: again.Manifest.Cells, CommandLine: rs.CommandLine, Parameters: again.Manifest.Parameters, Flags: again.Manifest.Flags, Versions: again.Manifest.Versions,
			Options: again.Manifest.Options, Scheduler: r.Scheduler.Name(), Created: rs.Now(),
		}
		if err = errors.Join(writeJob(r.Scheduler, draft.Dir, asked, decided), m.Write(draft.Dir)); err == nil {
			err = draft.Publish()
		}
		if err != nil {
			return errors.Join(err, draft.Discard())
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, draft.Release()) }()
	s, err = rs.handOver(ctx, r.Scheduler, decided, m.NoSubmit)
	s.expected = expected
	return s, err
}

// again returns the job of a run as another run's. It refuses programs that are gone or changed.
func (rs *Runs) again(ctx context.Context, r Run, c Changes) (spec submit.JobSpec, a stage.Again, err error) {
	a = stage.Again{Dir: r.Dir, Manifest: r.Manifest}
	if spec, a.Parameters, err = rs.jobAgain(r, c); err != nil {
		return spec, a, err
	}
	for _, cell := range spec.Cells {
		if err := checkProgram(r.Manifest, r.Dir, cell); err != nil {
			return spec, a, fmt.Errorf("run %s can't run again: %w", r.Dir.Name(), err)
		}
	}
	if a.Manifest.Flags, err = stage.CheckMoreArgs(ctx, rs.Shell, spec); err != nil {
		return spec, a, err
	}
	for i, cell := range spec.WithArgs(spec.Cells) {
		cell.SHA256 = r.Manifest.Cells[i].SHA256
		a.Manifest.Cells[i] = cell
	}
	return spec, a, spec.CheckFor(r.Scheduler)
}

// jobAgain returns the job of a run with changes, and the values that its parameters were given.
func (rs *Runs) jobAgain(r Run, c Changes) (spec submit.JobSpec, given map[string]string, err error) {
	if spec, err = submit.ReadSpec(r.Dir); err == nil {
		given, err = executed.Parameters(r.Dir)
	}
	if err != nil {
		return spec, given, fmt.Errorf("run %s can't run again: %w", r.Dir.Name(), err)
	}
	spec.MoreArgs = nil
	if err := rs.changeJob(r, &spec, c); err != nil {
		return spec, given, err
	}
	if len(c.Args) > 0 {
		spec.Args = c.Args
	}
	return spec, given, rs.CheckSecrets(spec)
}
