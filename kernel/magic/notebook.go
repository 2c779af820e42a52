package magic

import (
	"encoding/json"
	"fmt"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/internal/nbformat"
)

// notebookCells returns a session's cells as a job gets them: without the magics that matter only
// to a person.
func notebookCells(session []Cell) []Cell {
	var cells []Cell
	for _, c := range session {
		parsed := gocell.Parse(c.Source)
		if parsed.Program != nil && parsed.Program.Name() == gocell.SubmitCell {
			continue
		}
		for _, call := range parsed.Calls {
			if m := call.Magic(); m != nil && (m.InJob == gocell.Ignored || m.Name == gocell.Result) {
				clear(parsed.Lines[call.Line-1 : call.End])
			}
		}
		if c.Source = strings.Join(parsed.Lines, "\n"); strings.TrimSpace(c.Source) != "" {
			cells = append(cells, c)
		}
	}
	return cells
}

// withoutResults leaves out the cells that use the values of "%result as NAME", which a job doesn't
// have. left are those cells' labels, with the name.
func withoutResults(session []Cell) (cells []Cell, left []string) {
	var names []string
	for _, c := range session {
		parsed := gocell.Parse(c.Source)
		names = append(names, resultNames(parsed)...)
		if name := usedName(parsed, names); name != "" {
			left = append(left, fmt.Sprintf("%s (it uses %s)", c.label(), name))
			continue
		}
		cells = append(cells, c)
	}
	return cells, left
}

// resultNames returns the names that a cell gives to the values of %result.
func resultNames(c gocell.Cell) (names []string) {
	for _, call := range c.Calls {
		if call.Name() != gocell.Result {
			continue
		}
		if _, name, err := gocell.ResultArgs(call.Rest()); err == nil && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// usedName returns the first of the names that occurs in the cell's Go, except as a field or
// method.
func usedName(c gocell.Cell, names []string) string {
	before := token.ILLEGAL
	for t := range gocell.Tokens(strings.Join(c.GoLines(), "\n"), 0) {
		if t.Kind == token.IDENT && before != token.PERIOD && slices.Contains(names, t.Text) {
			return t.Text
		}
		before = t.Kind
	}
	return ""
}

// asMain turns the body of %%submit into a main cell, with the same line numbers as the cell of the
// magic.
func asMain(body string) string {
	if gocell.Parse(body).File().HasMain() {
		return "\n" + body
	}
	return "%%\n" + body
}

// labelsOf returns how messages about a job name the cells.
func labelsOf(cells []Cell) []string {
	labels := make([]string, len(cells))
	for i, c := range cells {
		labels[i] = c.label()
	}
	return labels
}

// notebookText returns a notebook with these code cells of the notebook with this file name.
func notebookText(name string, sources []Cell) ([]byte, error) {
	type cell struct {
		ID       string          `json:"id"`
		Type     string          `json:"cell_type"`
		Source   string          `json:"source"`
		Metadata json.RawMessage `json:"metadata"`
		Outputs  []any           `json:"outputs"`
		Count    *int            `json:"execution_count"`
	}
	cells := make([]cell, len(sources))
	for i, c := range sources {
		if c.ID == "" || slices.ContainsFunc(sources[i+1:], func(later Cell) bool { return later.ID == c.ID }) {
			c.ID = "session-" + strconv.Itoa(i+1) // not cell-1, which is a name for --cell
		}
		if c.metadata == nil {
			c.metadata = json.RawMessage("{}")
		}
		cells[i] = cell{ID: c.ID, Type: "code", Source: c.Source, Metadata: c.metadata, Outputs: []any{}}
	}
	return json.MarshalIndent(map[string]any{
		"nbformat": 4, "nbformat_minor": 5, "cells": cells,
		"metadata": map[string]any{
			nbformat.OriginKey: nbformat.Origin{Notebook: name, Cells: labelsOf(sources)},
			"kernelspec":       map[string]string{"name": "gonbatch", "display_name": "Go (gonbatch)", "language": "go"},
			"language_info":    map[string]string{"name": "go"},
		},
	}, "", " ")
}
