package stage

import (
	"errors"
	"fmt"
	"io/fs"
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
	if err := copyNotebook(shell, p.Notebook.File, dir.Notebook()); err != nil {
		return dir, err
	}
	if err := p.Module.Write(dir.Sources()); err != nil {
		return dir, err
	}
	for _, fill := range []func(rundir.Dir) error{p.stagePrograms, p.stageRecorder, p.stageNotebook, p.stagePlugin, p.stageKept} {
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

// stageRecorder puts the program that writes executed.ipynb into the run directory.
func (p Prepared) stageRecorder(dir rundir.Dir) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return store.Of(dir).Link(self, dir.Submit())
}

// stageNotebook writes executed.ipynb as it is before the run.
func (p Prepared) stageNotebook(dir rundir.Dir) error {
	nb, err := p.Notebook.File.Parse()
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

// stageKept gives the run the values that the session has kept.
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

// copyNotebook writes the notebook that was compiled. One that is kept as Go becomes a notebook.
// Any other is copied whole; if it has been saved since it was read, only its outputs are lost.
func copyNotebook(shell submit.Shell, file *nbformat.File, to string) error {
	if nbformat.IsPercent(file.Path) {
		nb, err := file.Parse()
		if err != nil {
			return err
		}
		data, err := nb.Marshal()
		if err != nil {
			return err
		}
		return rundir.WriteFileAtomic(to, data, 0o600)
	}
	same, err := copyUnchanged(file, to)
	if err != nil || same {
		return err
	}
	shell.Warn("%s was saved while it was being compiled: the run has it as it was before, "+
		"without its outputs", file.Path)
	return rundir.WriteFileAtomic(to, file.Text(), 0o600)
}

// copyUnchanged copies the file, and reports whether it is still the one that was read.
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
