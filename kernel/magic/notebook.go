package magic

import (
	"encoding/json"
	"fmt"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/gocell"
)

// notebookCells are the cells of a session as a job gets them: without the magics that matter to a
// person only.
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

// withoutResults leaves out the cells that use the values of "%result as NAME": a job does not have
// them. left are those cells' labels, with the name.
func withoutResults(session []Cell) (cells []Cell, left []string) {
	var names []string
	for i, c := range session {
		parsed := gocell.Parse(c.Source)
		names = append(names, resultNames(parsed)...)
		if name := usedName(parsed, names); name != "" {
			left = append(left, fmt.Sprintf("%s (it uses %s)", c.label(i+1), name))
			continue
		}
		cells = append(cells, c)
	}
	return cells, left
}

// resultNames are the values that a cell asks of %result.
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

// usedName is the first of the names that the Go of a cell has, other than as a field or method.
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

// asMain makes a cell a main cell.
func asMain(body string) string {
	if gocell.Parse(body).File().HasMain() {
		return body
	}
	return "%%\n" + body
}

// notebookText is a notebook with these code cells.
func notebookText(sources []Cell) ([]byte, error) {
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
		if c.ID == "" {
			c.ID = "cell-" + strconv.Itoa(i+1)
		}
		if c.metadata == nil {
			c.metadata = json.RawMessage("{}")
		}
		cells[i] = cell{ID: c.ID, Type: "code", Source: c.Source, Metadata: c.metadata, Outputs: []any{}}
	}
	return json.MarshalIndent(map[string]any{
		"nbformat": 4, "nbformat_minor": 5, "cells": cells,
		"metadata": map[string]any{
			"kernelspec":    map[string]string{"name": "gonbatch", "display_name": "Go (gonbatch)", "language": "go"},
			"language_info": map[string]string{"name": "go"},
		},
	}, "", " ")
}
