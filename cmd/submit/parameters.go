package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
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

// values are all parameters that are given.
func (o exportOptions) values() (map[string]string, error) {
	values := map[string]string{}
	if o.ParamsFile != "" {
		if err := o.checkParamsFile(); err != nil {
			return nil, err
		}
		data, err := os.ReadFile(o.ParamsFile)
		if err != nil {
			return nil, fmt.Errorf("--params-file: %w", err)
		}
		if values, err = parseParams(data); err != nil {
			return nil, fmt.Errorf("--params-file=%s: %w", o.ParamsFile, err)
		}
	}
	for _, text := range o.Params {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usage("-p %q: give NAME=VALUE, as in -p epochs=3", text)
		}
		values[name] = value
	}
	return values, nil
}

// checkParamsFile finds who wants to follow a job by -f, as "submit logs" does.
func (o exportOptions) checkParamsFile() error {
	if filepath.Ext(o.ParamsFile) != ".ipynb" {
		return nil
	}
	return usage("-f %s: that is a notebook, and -f is --params-file, a YAML file of parameters; to follow the job, use -F", o.ParamsFile)
}

// parseParams reads a YAML mapping of names to plain values, which stay as they are written.
func parseParams(data []byte) (map[string]string, error) {
	values := map[string]string{}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return values, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("give one line NAME: VALUE for each parameter")
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i], root.Content[i+1]
		if value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
			return nil, fmt.Errorf("line %d: %s: give one number, text or truth value", name.Line, name.Value)
		}
		if _, twice := values[name.Value]; twice {
			return nil, fmt.Errorf("line %d: %s is there twice", name.Line, name.Value)
		}
		values[name.Value] = value.Value
	}
	return values, nil
}
