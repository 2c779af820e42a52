package gocell

import (
	"errors"
	"fmt"
	"go/token"
	"strings"
)

// Kept are the arguments of %keep: "x, y" or "-d x, y".
type Kept struct {
	// Names are the variables. If there are none, %keep lists the kept variables.
	Names []string
	// Drop is set if the variables are no longer kept.
	Drop bool
}

// Kept parses the arguments of a %keep.
func (c Call) Kept() (Kept, error) {
	words := strings.FieldsFunc(c.Rest(), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	drop := len(words) > 0 && words[0] == "-d"
	if drop {
		words = words[1:]
	}
	if drop && len(words) == 0 {
		return Kept{}, errors.New("%keep -d needs the names of variables: %keep -d x, y")
	}
	for _, name := range words {
		if !isVariable(name) {
			return Kept{}, fmt.Errorf("%%keep %s: not the name of a variable: %%keep x, y", name)
		}
	}
	return Kept{words, drop}, nil
}

func isVariable(name string) bool { return token.IsIdentifier(name) && name != "_" }

// ResultArgs parses the arguments of %result: "[RUN] [as NAME]".
func ResultArgs(args string) (job, variable string, err error) {
	words := strings.Fields(args)
	if n := len(words); n >= 2 && words[n-2] == "as" {
		variable, words = words[n-1], words[:n-2]
		if !isVariable(variable) {
			return "", "", fmt.Errorf("%s can't be the name of a variable: want %%result [RUN] as NAME", variable)
		}
	}
	switch {
	case len(words) > 1 || len(words) == 1 && words[0] == "as":
		return "", "", errors.New("want %result [RUN] [as NAME]")
	case len(words) == 1:
		job = words[0]
	}
	return job, variable, nil
}

// Env parses the arguments of an %env: NAME VALUE or NAME=VALUE.
func (c Call) Env() (name, value string, err error) {
	args := c.Args()
	if len(args) == 1 {
		if name, value, ok := strings.Cut(args[0], "="); ok {
			args = []string{name, value}
		}
	}
	if len(args) != 2 || args[0] == "" {
		return "", "", errors.New("%env takes a name and a value: %env NAME VALUE; quote a value that has spaces")
	}
	return args[0], args[1], nil
}
