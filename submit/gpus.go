package main

import (
	"fmt"
	"strconv"
	"strings"
)

// gpus is the value of --gpus-per-node: a number, or a type and a number, as "a100:2". It is a
// flag's value.
type gpus struct {
	count int
	kind  string
}

// String is the value as the command line has it.
func (g *gpus) String() string {
	if g.kind == "" {
		return strconv.Itoa(g.count)
	}
	return g.kind + ":" + strconv.Itoa(g.count)
}

// Set reads a value. SLURM takes a type without a number for one GPU of it.
func (g *gpus) Set(text string) error {
	kind, number, typed := strings.Cut(text, ":")
	if !typed {
		kind, number = "", text
	}
	count, err := strconv.Atoi(number)
	if err != nil || typed && kind == "" {
		return fmt.Errorf("%q is not a number, nor a type and a number", text)
	}
	g.count, g.kind = count, kind
	return nil
}

// Type is what the help and the errors call the value.
func (g *gpus) Type() string { return "gpus" }
