package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gonbatch/internal/plural"
	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/stage"
)

// addPassedFlags declares a flag for each of submit.PassedOptions, which sets it in the job.
func addPassedFlags(fs *pflag.FlagSet, s *submit.JobSpec) {
	for _, o := range submit.PassedOptions {
		fs.VarP(passedValue{s, o}, o.Name, o.Letter, o.Usage)
		if o.Bare {
			fs.Lookup(o.Name).NoOptDefVal = "true"
		}
	}
}

func passedNames() (names []string) {
	for _, o := range submit.PassedOptions {
		names = append(names, o.Name)
	}
	return names
}

// passedValue is the value of a flag for an option of sbatch.
type passedValue struct {
	spec   *submit.JobSpec
	option submit.PassedOption
}

// String returns the job's value.
func (v passedValue) String() string {
	if v.spec == nil {
		return ""
	}
	value, set := v.spec.Passed[v.option.Name]
	if v.option.Bare {
		return cmp.Or(value, fmt.Sprint(set))
	}
	return value
}

// Set sets the job's value.
func (v passedValue) Set(text string) error {
	if v.option.IsOff(text) {
		delete(v.spec.Passed, v.option.Name)
		return nil
	}
	value, err := v.option.Parse(text)
	if err != nil {
		return config.ValueError{Err: err}
	}
	v.spec.SetPassed(v.option.Name, value)
	return nil
}

// Check returns Set's error.
func (v passedValue) Check(text string) error {
	return passedValue{&submit.JobSpec{}, v.option}.Set(text)
}

// Type is the kind of value, for the help.
func (v passedValue) Type() string {
	if v.option.Bare {
		return "bool"
	}
	return "string"
}

// memoryOptions are the options of which a job has one at most.
var memoryOptions = []string{"mem", "mem-per-cpu", "mem-per-gpu"}

// preferGiven drops what other sources say about memory if the command line says something.
func preferGiven(s *submit.JobSpec, flags *pflag.FlagSet) {
	if !slices.ContainsFunc(memoryOptions, flags.Changed) {
		return
	}
	s.Passed = maps.Clone(s.Passed)
	for _, name := range memoryOptions {
		switch {
		case flags.Changed(name):
		case name == "mem":
			s.Mem = ""
		default:
			delete(s.Passed, name)
		}
	}
}

// params is the value of -p: parameters NAME=VALUE. A value without a = is a partition, as -p of
// sbatch is, for commands with that flag.
type params struct {
	pflag.SliceValue
	all   pflag.Value
	nb    *stage.Notebook
	flags *pflag.FlagSet
}

func newParams(flags *pflag.FlagSet, nb *stage.Notebook) *params {
	own := pflag.NewFlagSet("params", pflag.ContinueOnError)
	own.StringArrayVar(&nb.ParamValues, "param", nil, "")
	all := own.Lookup("param").Value
	return &params{SliceValue: all.(pflag.SliceValue), all: all, nb: nb, flags: flags}
}

// String returns the parameters.
func (p *params) String() string {
	if p.all == nil {
		return "[]"
	}
	return p.all.String()
}

// Type is the kind of value, for the help.
func (p *params) Type() string { return "stringArray" }

// Set adds a parameter, or sets the partition.
func (p *params) Set(text string) error {
	if strings.Contains(text, "=") || p.flags.Lookup("partition") == nil {
		return p.all.Set(text)
	}
	p.nb.Partition = text
	return p.flags.Set("partition", text)
}

// divide divides the ranks and GPUs that are given in total over the job's nodes. hasTasks is set
// if the ranks are.
func (o *submitOptions) divide(s *submit.JobSpec, flags *pflag.FlagSet, hasTasks bool) error {
	nodes := max(1, s.Nodes)
	switch err := submit.CheckCount("tasks", o.Tasks, 1); {
	case !hasTasks:
	case err != nil:
		return submit.UsageError{Err: err}
	case o.Tasks%nodes != 0:
		return submit.Usagef("--tasks=%d on %s: all nodes have the same number of ranks; give a multiple of %[3]d, or other --nodes", o.Tasks, plural.Of(nodes, "node"), nodes)
	case flags.Changed("tasks-per-node") && s.TasksPerNode*nodes != o.Tasks:
		return submit.Usagef("--tasks=%d, and --tasks-per-node=%d on %s: give one of them", o.Tasks, s.TasksPerNode, plural.Of(nodes, "node"))
	default:
		s.TasksPerNode = o.Tasks / nodes
	}
	total := o.GPUs
	switch {
	case total.Count == 0:
	case flags.Changed("gpus-per-node"):
		return submit.Usagef("--gpus=%s and --gpus-per-node=%s: give one of them", total.String(), s.GPUs.String())
	case total.Count%nodes != 0:
		return submit.Usagef("--gpus=%s on %s: all nodes have the same number of GPUs; give a multiple of %d, or other --nodes", total.String(), plural.Of(nodes, "node"), nodes)
	default:
		s.GPUs = submit.GPUs{Count: total.Count / nodes, Kind: total.Kind}
	}
	return nil
}
