package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gonbatch/rundir"
	"gonbatch/submit"
)

// stage fills a new run directory. When anything fails, nothing of it is left.
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
	return dir, linkPlugins(pluginDir, dir.Plugins())
}

// stageSteps puts the programs and the scripts of the steps into the run directory.
func stageSteps(p prepared, dir rundir.Dir) error {
	for _, step := range p.module.Steps {
		var err error
		if step.IsShell() {
			err = rundir.WriteFileAtomic(dir.Program(step.Script), p.module.Files[step.Script], 0o755)
		} else {
			err = linkFile(p.build.Programs[step.Name], dir.Program(step.Name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyNotebook(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return rundir.WriteFileAtomic(to, data, 0o644)
}

// linkPlugins puts the XLA plugins of a folder into the run directory.
func linkPlugins(from, to string) error {
	plugins, err := filepath.Glob(filepath.Join(escapeGlob(from), "pjrt_c_api_*_plugin.so"))
	if err != nil {
		return err
	}
	if len(plugins) == 0 {
		return fmt.Errorf("no XLA plugin pjrt_c_api_*_plugin.so in %s", from)
	}
	for _, plugin := range plugins {
		if err := linkFile(plugin, filepath.Join(to, filepath.Base(plugin))); err != nil {
			return err
		}
	}
	return nil
}

// escapeGlob makes a pattern that matches path itself.
func escapeGlob(path string) string {
	var pattern []rune
	for _, r := range path {
		if r == '*' || r == '?' || r == '[' || r == '\\' {
			pattern = append(pattern, '\\')
		}
		pattern = append(pattern, r)
	}
	return string(pattern)
}

// writeScript renders the batch script into the run directory.
func writeScript(spec submit.JobSpec, render func(submit.JobSpec) ([]byte, error)) error {
	script, err := render(spec)
	if err != nil {
		return err
	}
	return rundir.WriteFileAtomic(spec.RunDir.Script(), script, 0o755)
}
