package main

import (
	"context"
	"fmt"

	"gonbatch/internal/nbformat"
	"gonbatch/submit/build"
	"gonbatch/submit/export"
)

// prepared is a notebook that was read, exported and compiled: what a run directory is made of.
type prepared struct {
	module *export.Module
	build  *build.Result
	// reuse is what is taken from an earlier run; nil for a run of all steps.
	reuse *reuse
}

// exportNotebook reads and exports the notebook, and shows what its programs do without.
func exportNotebook(ctx context.Context, a *app, path string, o exportOptions) (*export.Module, error) {
	module, err := readModule(ctx, a, path, o)
	if err != nil {
		return nil, err
	}
	for _, w := range module.Warnings {
		fmt.Fprintln(a.err, "submit: warning:", w)
	}
	return module, nil
}

// readModule reads and exports the notebook.
func readModule(ctx context.Context, a *app, path string, o exportOptions) (*export.Module, error) {
	values, err := o.values()
	if err != nil {
		return nil, err
	}
	nb, err := readNotebook(path)
	if err != nil {
		return nil, err
	}
	sourceDir, err := sourceDir(ctx, a)
	if err != nil {
		return nil, err
	}
	return export.FromNotebook(nb, export.Options{Cells: o.Cells, SourceDir: sourceDir, Parameters: values, Script: o.Script})
}

// readNotebook reads the notebook that a person names.
func readNotebook(path string) (*nbformat.Notebook, error) { return nbformat.Read(path) }

// compile type-checks and compiles the module's programs, in a folder that is gone afterwards.
func compile(ctx context.Context, a *app, module *export.Module) (result *build.Result, err error) {
	err = inModule(module, func(dir string) (err error) {
		result, err = build.Build(ctx, dir, module, build.Options{Env: a.environ})
		return err
	})
	return result, err
}
