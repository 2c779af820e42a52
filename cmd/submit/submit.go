package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/rundir"
	"gonbatch/slurmtmpl"
	"gonbatch/submit"
	"gonbatch/submit/export"
	"gonbatch/submit/slurm"
)

// runSubmit is the whole way of a notebook: all that can be refused comes first and leaves nothing behind.
func runSubmit(ctx context.Context, a *app, o *submitOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	module, err := exportNotebook(ctx, a, o.Notebook, o.exportOptions)
	if err != nil {
		return err
	}
	spec, err := o.preview(ctx, a, module)
	if err != nil {
		return err
	}
	if o.DryRun {
		script, err := slurmtmpl.Render(spec)
		if err != nil {
			return err
		}
		_, err = a.out.Write(script)
		return err
	}
	if err := rundir.CheckRoot(o.RunRoot); err != nil {
		return err
	}
	p := prepared{module: module}
	if p.reuse, err = o.findReuse(module, spec); err != nil {
		return err
	}
	if p.build, err = compile(ctx, a, module); err != nil {
		return err
	}
	// Compute nodes have no network: what the programs need is brought to this machine.
	plugins, err := providePlugin(ctx, a, spec.Platform)
	if err != nil {
		return err
	}
	if err := fetchDatasets(ctx, module.Imports, a.getenv, a.err); err != nil {
		return err
	}
	spec.PluginDir = plugins.inPlace
	return o.launch(ctx, a, p, spec, plugins.stage)
}

// preview makes the job as far as it is known before there is a run directory, and refuses one that cannot work.
func (o *submitOptions) preview(ctx context.Context, a *app, module *export.Module) (submit.JobSpec, error) {
	root, err := filepath.Abs(o.RunRoot)
	if err != nil {
		return submit.JobSpec{}, err
	}
	dir := rundir.At(filepath.Join(root, rundir.Slug(o.name())+"-DATE-TIME-XXXX"))
	spec, err := o.spec(a, module, dir)
	if err != nil || o.Local {
		return spec, err
	}
	if spec.PluginDir, err = previewPlugin(a, spec); err != nil {
		return spec, err
	}
	if !o.DryRun && !o.NoSubmit {
		if err := slurm.Available(); err != nil {
			return spec, err
		}
	}
	mpi, err := findMPI(ctx, a, o, spec)
	if err != nil {
		return spec, err
	}
	spec.MPI, spec.MPILibrary = mpi.Kind, mpi.Library
	_, err = slurmtmpl.Render(spec)
	return spec, err
}

// findMPI decides srun's --mpi. A preview on a machine without SLURM guesses, and says so.
func findMPI(ctx context.Context, a *app, o *submitOptions, spec submit.JobSpec) (slurm.MPI, error) {
	installed := slurm.Installed(ctx, a.runner, a.getenv)
	mpi, err := slurm.New(a.runner).FindMPI(ctx, spec, installed)
	if !errors.Is(err, exec.ErrNotFound) || !o.DryRun && !o.NoSubmit {
		return mpi, err
	}
	mpi = slurm.MPI{Kind: "pmix", Library: spec.MPILibrary}
	if spec.MPI != "" && spec.MPI != "auto" {
		mpi.Kind = spec.MPI
	}
	fmt.Fprintf(a.err, "submit: warning: there is no srun here to ask for its kinds of MPI: taking --mpi=%s\n", mpi.Kind)
	return mpi, nil
}

// launch stages the run, with the plugin of pluginDir if that is given, and starts it.
func (o *submitOptions) launch(ctx context.Context, a *app, p prepared, spec submit.JobSpec, pluginDir string) error {
	dir, err := stage(a, o, p, pluginDir)
	if err != nil {
		return err
	}
	spec.RunDir = dir
	job, err := o.begin(ctx, a, p, spec)
	switch {
	case err != nil:
		return err
	case o.Local:
		return runStarted(ctx, a, spec)
	case o.NoSubmit:
		return describeStaged(a, spec)
	}
	return announce(ctx, a, spec, job, o.Follow, o.command)
}

// begin makes the staged folder a run that others find, and starts it: nobody can do that a second time meanwhile. A run on this
// machine is recorded as this process's then, but its programs are still to be started.
func (o *submitOptions) begin(ctx context.Context, a *app, p prepared, spec submit.JobSpec) (job submit.Job, err error) {
	lock, err := a.lock(ctx, spec.RunDir)
	if err != nil {
		return job, errors.Join(err, discard(spec.RunDir))
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := o.describe(ctx, a, p, spec); err != nil {
		return job, errors.Join(err, discard(spec.RunDir))
	}
	switch {
	case o.Local:
		err = recordProcess(submit.Job{Dir: spec.RunDir})
	case !o.NoSubmit:
		job, err = queue(ctx, a, spec)
	}
	return job, err
}

// describeStaged tells how to queue what was staged.
func describeStaged(a *app, spec submit.JobSpec) error {
	a.warnCounting()
	_, err := fmt.Fprintf(a.out, "run directory: %s\nqueue it with:  %s\n", spec.RunDir.Path(), slurm.SubmitCommand(spec))
	return err
}

// describe writes the batch script, the job and the manifest.
func (o *submitOptions) describe(ctx context.Context, a *app, p prepared, spec submit.JobSpec) error {
	scheduler := localName
	if !o.Local {
		scheduler = slurm.Name
		if err := writeScript(spec, slurmtmpl.Render); err != nil {
			return err
		}
	}
	// A resumed run may have another MPI: what was asked for is kept, not what was found.
	asked := spec
	asked.MPI, asked.MPILibrary = o.MPI, o.MPILibrary
	if err := submit.WriteSpec(asked); err != nil {
		return err
	}
	m, err := newManifest(ctx, a, o, p, spec, scheduler)
	if err != nil {
		return err
	}
	return m.Write(spec.RunDir)
}

// command is a submit command line for a person to type, that finds the same runs.
func (o *submitOptions) command(words ...string) string {
	if o.onCommandLine("run-root") {
		words = append(words, "--run-root", o.RunRoot)
	}
	return "submit " + shellescape.QuoteCommand(words)
}

// trimmed is the last part of a text for one line of a table.
func trimmed(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
