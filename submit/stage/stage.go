package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// stage fills a new run directory, with the plugin for CPUs of pluginDir if that is given. When anything fails, nothing of
// it is left.
func stage(a *app, o *submitOptions, p prepared, pluginDir string) (dir rundir.Dir, err error) {
	dir, err = rundir.Create(o.RunRoot, o.name(), a.now())
	if err != nil {
		return rundir.Dir{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("stage the run: %w", err), os.RemoveAll(dir.Path()))
		}
	}()
	if err := copyNotebook(o.Notebook, dir.Notebook()); err != nil {
		return dir, err
	}
	if err := p.module.Write(dir.Sources()); err != nil {
		return dir, err
	}
	if err := stageSteps(p, dir); err != nil {
		return dir, err
	}
	if err := stageRecorder(o, p, dir); err != nil {
		return dir, err
	}
	if err := linkPlugins(pluginDir, dir); err != nil {
		return dir, err
	}
	a.warnUnlessForbidden(storeOf(dir).clean(a.now()))
	return dir, dir.Protect()
}

// stageSteps puts the programs and the scripts of the steps into the run directory.
func stageSteps(p prepared, dir rundir.Dir) error {
	for _, step := range p.module.Steps {
		if script := step.Script(); script != "" {
			if err := rundir.WriteFileAtomic(dir.Program(script), p.module.Files[script], 0o700); err != nil {
				return err
			}
		}
		if step.Shell {
			continue
		}
		if err := storeOf(dir).link(p.build.Programs[step.Name], dir.Program(step.Name)); err != nil {
			return err
		}
	}
	return nil
}

// linkPlugins puts the XLA plugin for CPUs into the run directory. Without a folder to take it from there is nothing to do.
func linkPlugins(from string, dir rundir.Dir) error {
	if from == "" {
		return nil
	}
	name := plugin.FileName(plugin.CPU)
	return storeOf(dir).link(filepath.Join(from, name), filepath.Join(dir.Plugins(), name))
}

// writeScript renders the batch script into the run directory.
func writeScript(spec submit.JobSpec, render func(submit.JobSpec) ([]byte, error)) error {
	script, err := render(spec)
	if err != nil {
		return err
	}
	return rundir.WriteFileAtomic(spec.RunDir.Script(), script, 0o700)
}

// copyNotebook copies a notebook whole; one that is kept as Go becomes a notebook.
func copyNotebook(from, to string) error {
	if !nbformat.IsPercent(from) {
		return copyFile(from, to)
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
