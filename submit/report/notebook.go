package report

import (
	"fmt"
	"io"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// Check describes what a job of a notebook would do, with findings about its cells.
type Check struct {
	Notebook string        `json:"notebook"`
	Cells    []rundir.Cell `json:"cells"`
	// Vet are go vet's findings, Warnings what the programs do without, and Notes code that may not
	// do what was intended. Each names its cell and line.
	Vet      []string `json:"vet,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	// Forecast is what the training step takes on GPUs, if --target asks for it.
	Forecast *Forecast `json:"forecast,omitempty"`
	// Error is why submit would refuse the notebook; empty if it would accept it.
	Error string `json:"error,omitempty"`
}

// Refused returns the check with err, if it is not nil, as the reason why submit refuses the
// notebook.
func (c Check) Refused(err error) Check {
	if err != nil {
		c.Error = err.Error()
	}
	return c
}

// Text lists the cells and the findings.
func (c Check) Text(w io.Writer) error {
	rows := [][]string{{"NAME", "CELL", "RUNS", "WHAT"}}
	for _, cell := range c.Cells {
		where, what := "on every rank", "program "+shellescape.QuoteCommand(append([]string{cell.Name}, cell.Args...))
		if cell.Shell {
			what = cell.Title
		}
		if cell.Shell || cell.Once {
			where = "once, on the first node"
		}
		if cell.Dir != "" {
			what += " (in " + cell.Dir + ")"
		}
		rows = append(rows, []string{cell.Name, cell.Label(), where, what})
	}
	if err := table(w, fmt.Sprintf("a job of %s runs %s", c.Notebook, plural.Of(len(c.Cells), "cell")), rows); err != nil {
		return err
	}
	for _, group := range []struct {
		name  string
		texts []string
	}{{"vet", c.Vet}, {"warning", c.Warnings}, {"note", c.Notes}} {
		for _, text := range group.texts {
			fmt.Fprintf(w, "%s: %s\n", group.name, text)
		}
	}
	if c.Error != "" {
		if c.Forecast != nil {
			return c.Forecast.Text(w)
		}
		return nil
	}
	if _, err := fmt.Fprintf(w, "%s would be submitted\n", c.Notebook); err != nil || c.Forecast == nil {
		return err
	}
	return c.Forecast.Text(w)
}

// Params lists the values that can be set in a notebook without editing it.
type Params struct {
	Notebook string `json:"notebook"`
	// Parameters are set by -p NAME=VALUE, and Flags after --.
	Parameters []Param `json:"parameters"`
	Flags      []Param `json:"flags"`
}

// Param is a parameter or a flag. Type and Default are as in the cell.
type Param struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"`
	Default string `json:"default,omitempty"`
	Usage   string `json:"usage,omitempty"`
	// Cell is the number of the cell, from 1.
	Cell int `json:"cell"`
}

// Text writes two tables.
func (p Params) Text(w io.Writer) error {
	if len(p.Parameters)+len(p.Flags) == 0 {
		_, err := fmt.Fprintf(w, "%s has no parameters and no flags: tag the cell that declares some \"parameters\", or use the flag package\n", p.Notebook)
		return err
	}
	rows := [][]string{{"PARAMETER", "TYPE", "DEFAULT", "CELL"}}
	for _, p := range p.Parameters {
		rows = append(rows, []string{p.Name, dash(p.Type), dash(p.Default), fmt.Sprint(p.Cell)})
	}
	if len(p.Parameters) > 0 {
		if err := table(w, "set with -p NAME=VALUE", rows); err != nil {
			return err
		}
	}
	if len(p.Flags) == 0 {
		return nil
	}
	rows = [][]string{{"FLAG", "TYPE", "DEFAULT", "CELL", "USAGE"}}
	for _, f := range p.Flags {
		rows = append(rows, []string{"-" + f.Name, dash(f.Type), dash(f.Default), fmt.Sprint(f.Cell), f.Usage})
	}
	return table(w, "set after --", rows)
}

// Export lists the commands that run the cells of an exported notebook.
type Export struct {
	Folder   string   `json:"folder"`
	Commands []string `json:"commands"`
}

// Text lists the commands.
func (e Export) Text(w io.Writer) error {
	for _, command := range e.Commands {
		if _, err := fmt.Fprintln(w, command); err != nil {
			return err
		}
	}
	return nil
}

// Script is a notebook's only program as a single Go file.
type Script struct {
	// File is the file with the source; "" if the source is printed.
	File   string `json:"file,omitempty"`
	Source string `json:"source,omitempty"`
}

// Text writes the source.
func (s Script) Text(w io.Writer) error {
	_, err := io.WriteString(w, s.Source)
	return err
}
