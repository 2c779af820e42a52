package main

import (
	"context"
	"slices"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/export"
)

// newManifest describes a staged run.
func newManifest(ctx context.Context, a *app, o *submitOptions, p prepared, spec submit.JobSpec, scheduler string) (rundir.Manifest, error) {
	notebook, err := o.origin()
	if err != nil {
		return rundir.Manifest{}, err
	}
	hash, err := hashFile(spec.RunDir.Notebook())
	if err != nil {
		return rundir.Manifest{}, err
	}
	steps, err := manifestSteps(p, spec)
	if err != nil {
		return rundir.Manifest{}, err
	}
	return rundir.Manifest{
		Name:          spec.RunDir.Name(),
		Notebook:      rundir.File{Path: notebook, SHA256: hash},
		Git:           gitState(ctx, a.runner, notebook),
		SourcesSHA256: hashSources(p.module),
		Steps:         steps,
		CommandLine:   a.commandLine,
		Versions:      versionsOf(p.module, p.build.GoVersion),
		Options:       effectiveOptions(o.config),
		Scheduler:     scheduler,
		Created:       a.now(),
		ReusedFrom:    p.reuse.run(),
	}, nil
}

// manifestSteps describes the programs, with the hashes of the bytes that will run.
func manifestSteps(p prepared, spec submit.JobSpec) ([]rundir.Step, error) {
	known, err := userHashes()
	if err != nil {
		return nil, err
	}
	list := slices.Clone(spec.Steps)
	for i, s := range list {
		list[i].Args = spec.StepArgs(s)
		if s.Shell {
			list[i].SHA256 = hashBytes(p.module.Files[s.Script()])
		} else if list[i].SHA256, err = known.of(p.build.Programs[s.Name]); err != nil {
			return nil, err
		}
	}
	return list, known.save()
}

// hashSources is one hash over all files of the module: their names and contents, in order.
func hashSources(m *export.Module) string {
	var all []byte
	for _, name := range m.FileNames() {
		all = append(all, hashBytes([]byte(name))...)
		all = append(all, hashBytes(m.Files[name])...)
	}
	return hashBytes(all)
}

// effectiveOptions are those that are not the defaults.
func effectiveOptions(c *config.Config) map[string]any {
	options := map[string]any{}
	if c == nil {
		return options
	}
	for _, s := range c.Settings {
		if s.Origin != config.Default {
			options[s.Key] = s.Value
		}
	}
	return options
}
