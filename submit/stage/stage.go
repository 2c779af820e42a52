package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/executed"
	"gonbatch/submit/export"
	"gonbatch/submit/export/nbcell"
	"gonbatch/submit/store"
)

// Stage creates the draft of a new run directory in root. If anything fails, it leaves nothing
// behind. It also removes what killed commands have left there.
func (p Prepared) Stage(ctx context.Context, shell submit.Shell, root, name string) (*rundir.Draft, error) {
	return p.draft(ctx, shell, root, name, func(d *rundir.Draft) error { return p.fill(shell, d) })
}

// draft creates a draft, which fill fills.
func (p Prepared) draft(ctx context.Context, shell submit.Shell, root, name string, fill func(*rundir.Draft) error) (*rundir.Draft, error) {
	shell.WarnUnlessForbidden(errors.Join(rundir.CheckShared(root), rundir.SweepDrafts(root, shell.Now()), p.store(root).Clean(shell.Now())))
	draft, err := rundir.NewDraft(ctx, root, name, shell.Now())
	if err != nil {
		return nil, err
	}
	if err := fill(draft); err != nil {
		return nil, errors.Join(fmt.Errorf("stage the run: %w", err), draft.Discard())
	}
	return draft, nil
}

// fill writes everything that does not depend on the scheduler into the draft.
func (p Prepared) fill(shell submit.Shell, draft *rundir.Draft) error {
	if err := copyNotebook(shell, p.Notebook.File, draft.Dir.Notebook()); err != nil {
		return err
	}
	if err := p.Module.Write(draft.Dir.Sources()); err != nil {
		return err
	}
	for _, fill := range []func(rundir.Dir) error{p.stagePrograms, p.stagePlugin, p.stageOneDNN, p.stageKept} {
		if err := fill(draft.Dir); err != nil {
			return err
		}
	}
	if err := p.stageSubmit(shell, draft.Dir); err != nil {
		return err
	}
	if err := p.stageNotebook(draft); err != nil {
		return err
	}
	return draft.Dir.Protect()
}

// WithRoom calls fill, which writes into the run root. If the disk is full, it removes shared files
// that no run links to any longer, and calls fill again.
func WithRoom(shell submit.Shell, root string, fill func() error) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("run root %q: %w", root, err)
	}
	shared := store.In(root, "") // It links nothing.
	err = fill()
	if store.IsFull(err) && shared.MakeRoom(shell.Now()) {
		err = fill()
	}
	if store.IsFull(err) {
		return shared.FullError(err)
	}
	return err
}

// store returns the store of a run root.
func (p Prepared) store(root string) store.Store { return store.In(root, p.cache) }

// stagePrograms puts the programs and the scripts of the cells into the run directory.
func (p Prepared) stagePrograms(dir rundir.Dir) error {
	for _, cell := range p.Module.Cells {
		if script := cell.Script(); script != "" {
			if err := rundir.WriteFileAtomic(dir.Program(script), p.Module.Files[script], 0o700); err != nil {
				return err
			}
		}
		if cell.Shell {
			continue
		}
		if err := p.store(dir.Root()).Link(p.build.Programs[cell.Name], dir.Program(cell.Name)); err != nil {
			return err
		}
	}
	return nil
}

// stageSubmit puts the submit command, which runs the job and its ranks, into the run directory.
func (p Prepared) stageSubmit(shell submit.Shell, dir rundir.Dir) error {
	if shell.Self == "" {
		return errors.New("the path of the submit command is unknown: is /proc mounted?")
	}
	err := p.store(dir.Root()).Keep(shell.Self, dir.Submit())
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s was deleted or moved while it ran, and jobs need a copy of it: install it again, and submit again: %w", shell.Self, err)
	}
	return err
}

// stageNotebook writes executed.ipynb in its state before the run.
func (p Prepared) stageNotebook(draft *rundir.Draft) error {
	nb, err := p.Notebook.File.Parse()
	if err != nil {
		return err
	}
	plan, err := p.Notebook.plan(p.Module, nb)
	if err != nil {
		return err
	}
	plan.Run = draft.Run
	if p.Reuse != nil {
		return p.Reuse.stage(draft.Dir, nb, plan)
	}
	return executed.Prepare(draft.Dir, nb, plan)
}

// stagePlugin puts the XLA plugin for CPUs into the run directory, if it is not used in place.
func (p Prepared) stagePlugin(dir rundir.Dir) error {
	if p.plugin == "" {
		return nil
	}
	name := plugin.FileName(plugin.CPU)
	return p.store(dir.Root()).Link(filepath.Join(p.plugin, name), filepath.Join(dir.Plugins(), name))
}

// stageKept gives the run the values that the session's %keep has kept.
func (p Prepared) stageKept(dir rundir.Dir) error {
	if p.Notebook.SessionKept == "" {
		return nil
	}
	err := store.LinkFolder(p.Notebook.SessionKept, dir.KeptAtFirst())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("take the values that the session has kept: %w", err)
	}
	return nil
}

// copyNotebook copies the notebook that was compiled unchanged, except for an origin that was
// dropped. If the file was saved after it was read, the copy has the text that was read, without
// outputs.
func copyNotebook(shell submit.Shell, file *nbformat.File, to string) error {
	if file.Changed() {
		return rundir.WriteFileAtomic(to, file.Text(), 0o600)
	}
	same, err := copyUnchanged(file, to)
	if err != nil || same {
		return err
	}
	shell.Warn("%s was saved while it was being compiled: the run has it as it was before, "+
		"without its outputs", file.Path)
	return rundir.WriteFileAtomic(to, file.Text(), 0o600)
}

// copyUnchanged copies the file, and reports whether it is still the same as when it was read.
func copyUnchanged(file *nbformat.File, to string) (same bool, err error) {
	err = store.CopyFile(file.Path, to)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	hash, err := store.HashFile(to)
	return hash == file.SHA256, err
}

// plan returns what the run does with the notebook's cells.
func (n Notebook) plan(m *export.Module, nb *nbformat.Notebook) (executed.Plan, error) {
	input, err := n.origin()
	if err != nil {
		return executed.Plan{}, err
	}
	plan := planOf(m.Cells, nb)
	plan.Input, plan.Parameters = input, n.Parameters
	return plan, nil
}

// planOf returns the plan for a job's cells of a notebook.
func planOf(cells []rundir.Cell, nb *nbformat.Notebook) executed.Plan {
	plan := executed.Plan{Cells: cells, Version: "gonbatch " + Version()}
	for _, cell := range nb.Cells {
		runs := slices.ContainsFunc(cells, func(s rundir.Cell) bool { return s.Number == cell.Number })
		if nbcell.Skips(cell) && !runs {
			plan.LeftOut = append(plan.LeftOut, cell.Number)
		}
	}
	return plan
}
