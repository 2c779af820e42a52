package main

import (
	"context"
	"fmt"
	"os"

	"gonbatch/submit/build"
	"gonbatch/submit/export"
	"gonbatch/submit/nbformat"
)

// prepared is a notebook that was read, exported and compiled: what a run directory is made of.
type prepared struct {
	module *export.Module
	build  *build.Result
}

// exportNotebook reads and exports the notebook, and shows what its programs do without.
func exportNotebook(ctx context.Context, a *app, path string, o exportOptions) (*export.Module, error) {
	values, err := o.values()
	if err != nil {
		return nil, err
	}
	nb, err := nbformat.Read(path)
	if err != nil {
		return nil, err
	}
	sourceDir, err := sourceDir(ctx, a)
	if err != nil {
		return nil, err
	}
	module, err := export.FromNotebook(nb, export.Options{Cells: o.Cells, SourceDir: sourceDir, Parameters: values})
	if err != nil {
		return nil, err
	}
	for _, w := range module.Warnings {
		fmt.Fprintln(a.err, "submit: warning:", w)
	}
	return module, nil
}

// compile type-checks and compiles the module's programs, in a folder that is gone afterwards.
func compile(ctx context.Context, a *app, module *export.Module) (result *build.Result, err error) {
	dir, err := os.MkdirTemp("", "gonbatch-module-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := module.Write(dir); err != nil {
		return nil, err
	}
	return build.Build(ctx, dir, module, build.Options{Env: a.environ})
}
