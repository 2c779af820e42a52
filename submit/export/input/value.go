package input

import (
	"cmp"
	"flag"
	"io"
	"maps"
)

// FlagValues returns the values of the notebook's flags, by name, in a program with these
// arguments. Defaults are as written in the cells.
func FlagValues(flags []Flag, args []string) map[string]string {
	values := map[string]string{}
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, f := range flags {
		values[f.Name] = unquoted(f.Default)
		f.define(set)
	}
	_ = set.Parse(args) // Problem has reported mistakes.
	set.Visit(func(f *flag.Flag) { values[f.Name] = cmp.Or(f.Value.String(), "true") })
	maps.DeleteFunc(values, func(_, value string) bool { return value == "" })
	return values
}

// ParameterValues returns the values of the notebook's parameters, by name: the given ones, or as
// written in the cells.
func ParameterValues(parameters []Parameter, given map[string]string) map[string]string {
	values := map[string]string{}
	for _, p := range parameters {
		values[p.Name] = unquoted(p.Default)
	}
	maps.Copy(values, given)
	return values
}
