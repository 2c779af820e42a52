package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"gonbatch/submit/export"
)

func newParamsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "params notebook.ipynb",
		Short:   "List a notebook's parameters and flags",
		Example: "  submit params notebooks/mnist.ipynb",
		Args:    oneArg("notebook"),
		RunE: func(cmd *cobra.Command, args []string) error {
			module, err := exportNotebook(cmd.Context(), a, args[0], exportOptions{})
			if err != nil {
				return err
			}
			return listParams(a.out, module)
		},
	}
}

// listParams writes two tables: the parameters that -p sets, and the flags that follow --.
func listParams(w io.Writer, m *export.Module) error {
	if len(m.Parameters)+len(m.Flags) == 0 {
		_, err := fmt.Fprintf(w, "%s has no parameters and no flags: tag the cell that declares some %q, or use the flag package\n",
			m.Notebook, export.ParametersTag)
		return err
	}
	if len(m.Parameters) > 0 {
		rows := [][]string{{"PARAMETER", "TYPE", "DEFAULT", "CELL"}}
		for _, p := range m.Parameters {
			rows = append(rows, []string{p.Name, dash(p.Type), dash(p.Default), fmt.Sprint(p.Number)})
		}
		if err := table(w, "set with -p NAME=VALUE", rows); err != nil {
			return err
		}
	}
	if len(m.Flags) == 0 {
		return nil
	}
	rows := [][]string{{"FLAG", "TYPE", "DEFAULT", "CELL", "USAGE"}}
	for _, f := range m.Flags {
		rows = append(rows, []string{"-" + f.Name, dash(f.Type), dash(f.Default), fmt.Sprint(f.Number), f.Usage})
	}
	return table(w, "set after --", rows)
}

// table writes rows below a title, in columns.
func table(w io.Writer, title string, rows [][]string) error {
	if _, err := fmt.Fprintf(w, "%s:\n", title); err != nil {
		return err
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.Join(strings.Fields(cell), " ")
		}
		fmt.Fprintf(columns, "  %s\n", strings.Join(row, "\t"))
	}
	return columns.Flush()
}

// dash stands in an empty column.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
