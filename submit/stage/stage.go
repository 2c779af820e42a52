package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/executed"
	"gonbatch/submit/store"
)

// Stage fills a new run directory below root. When anything fails, nothing of it is left.
func (p Prepared) Stage(shell submit.Shell, root, name string) (dir rundir.Dir, err error) {
	dir, err = rundir.Create(root, name, shell.Now())
	if err != nil {
		return rundir.Dir{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("stage the run: %w", err), os.RemoveAll(dir.Path()))
		}
	}()
	if err := copyNotebook(p.Notebook.Path, dir.Notebook()); err != nil {
		return dir, err
	}
	if err := p.Module.Write(dir.Sources()); err != nil {
		return dir, err
	}
	for _, fill := range []func(rundir.Dir) error{p.stagePrograms, p.stageRecorder, p.stageNotebook, p.stagePlugin} {
		if err := fill(dir); err != nil {
			return dir, err
		}
	}
	shell.WarnUnlessForbidden(store.Of(dir).Clean(shell.Now()))
	return dir, dir.Protect()
}

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
		if err := store.Of(dir).Link(p.build.Programs[cell.Name], dir.Program(cell.Name)); err != nil {
			return err
		}
	}
	return nil
}

// stageRecorder puts into the run directory what writes executed.ipynb.
func (p Prepared) stageRecorder(dir rundir.Dir) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := store.Of(dir).Link(self, dir.Submit()); err != nil {
		return err
	}
	script, err := executed.RankScript(dir)
	if err != nil {
		return err
	}
	return rundir.WriteFileAtomic(dir.RankScript(), script, 0o700)
}

// stageNotebook writes executed.ipynb as it is before the run.
func (p Prepared) stageNotebook(dir rundir.Dir) error {
	nb, err := nbformat.Read(p.Notebook.Path)
	if err != nil {
		return err
	}
	plan, err := p.Notebook.plan(p.Module, nb)
	if err != nil {
		return err
	}
	if p.Reuse != nil {
		return p.Reuse.stage(dir, nb, plan)
	}
	return executed.Prepare(dir, nb, plan)
}

// stagePlugin puts the XLA plugin for CPUs into the run directory, if it is not used in place.
func (p Prepared) stagePlugin(dir rundir.Dir) error {
	if p.plugin == "" {
		return nil
	}
	name := plugin.FileName(plugin.CPU)
	return store.Of(dir).Link(filepath.Join(p.plugin, name), filepath.Join(dir.Plugins(), name))
}

// copyNotebook copies a notebook whole; one that is kept as Go becomes a notebook.
func copyNotebook(from, to string) error {
	if !nbformat.IsPercent(from) {
		return store.CopyFile(from, to)
	}
	nb, err := nbformat.Read(from)
	if err != nil {
		return err
	}
	data, err := nb.Marshal()
	if err != nil {
		return err
	}
	return rundir.WriteFileAtomic(to, data, 0o600)
}
