package main

import (
	"context"
	"gonbatch/submit/export"
	"gonbatch/submit/stage"

	"github.com/spf13/pflag"
)

// exportOptions are what decides about the exported programs.
type exportOptions struct {
	// Cells are the picked cells.
	Cells []string
	// Params are NAME=VALUE; they win over what ParamsFile has.
	Params     []string
	ParamsFile string
	// Script asks for one file.
	Script bool
}

// addFlags declares the flags, for the command that does verb.
func (o *exportOptions) addFlags(fs *pflag.FlagSet, verb string) {
	fs.StringArrayVar(&o.Cells, "cell", nil, verb+" only this cell: a tag, a cell id, a number or a name; repeatable")
	fs.StringArrayVarP(&o.Params, "param", "p", nil, "set parameter NAME=VALUE, a variable of a cell tagged \"parameters\"; repeatable")
	fs.StringVarP(&o.ParamsFile, "params-file", "f", "", "YAML file of parameters; -p overrides it")
}

// notebook is the notebook at path, with what o says of its programs.
func (o exportOptions) notebook(path string) (stage.Notebook, error) {
	values, err := stage.Parameters(o.ParamsFile, o.Params)
	return stage.Notebook{Path: path, Cells: o.Cells, Parameters: values, Script: o.Script}, err
}

// export reads and exports the notebook at path.
func (o exportOptions) export(ctx context.Context, a *app, path string) (*export.Module, error) {
	nb, err := o.notebook(path)
	if err != nil {
		return nil, err
	}
	return nb.Export(ctx, a.Shell)
}
