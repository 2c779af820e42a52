package main

import (
	"gonbatch/internal/nbformat"
	"gonbatch/submit/config"
	"gonbatch/submit/stage"

	"github.com/spf13/pflag"
)

// exportOptions are the options that affect the exported programs.
type exportOptions struct {
	// Cells are the picked cells.
	Cells []string
	// Params are NAME=VALUE; they override ParamsFile.
	Params     []string
	ParamsFile string
}

// addFlags declares the flags for a command; verb is what it does with a cell.
func (o *exportOptions) addFlags(fs *pflag.FlagSet, verb string) {
	fs.StringArrayVar(&o.Cells, "cell", nil, verb+" only this cell: a tag, a cell id, a number or a name; repeatable")
	fs.StringArrayVarP(&o.Params, "param", "p", nil, "set parameter NAME=VALUE, a variable of a cell tagged \"parameters\"; repeatable")
	config.NonEmpty(fs, &o.ParamsFile, "path", "params-file", "f", "", "YAML file of parameters; -p overrides it")
}

// notebook returns the notebook at path with the options in o.
func (o exportOptions) notebook(path string) (stage.Notebook, error) {
	values, places, err := stage.Parameters(o.ParamsFile, o.Params)
	if err != nil {
		return stage.Notebook{}, err
	}
	file, err := nbformat.Load(path)
	return stage.Notebook{File: file, Cells: o.Cells, Parameters: values, ParameterPlaces: places}, err
}
