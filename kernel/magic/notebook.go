package magic

import (
	"encoding/json"
	"fmt"
	"go/scanner"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// names are the line magics that only mean something to a person at the notebook.
var names = []string{"submit", "jobs", "logs", "wait", "cancel", "result", "devices", "distributed", "time", "who", "help"}

// notebookCells are the cells of a session as a job shall have them: without the magics of this package.
func notebookCells(session []Cell) []Cell {
	var cells []Cell
	for _, c := range session {
		source := c.Source
		if strings.HasPrefix(source, "%%submit") || strings.HasPrefix(source, "%timeit") {
			continue
		}
		if strings.HasPrefix(source, "%%") && len(source) > 2 && !strings.ContainsAny(source[2:3], " \t\n") {
			cells = append(cells, c) // %%bash and the like: no line of it is a magic
			continue
		}
		lines := strings.Split(source, "\n")
		for i, line := range lines {
			word, _, _ := strings.Cut(strings.TrimPrefix(line, "//gonb:"), " ")
			if name, ok := strings.CutPrefix(word, "%"); ok && slices.Contains(names, name) {
				lines[i] = ""
			}
		}
		if c.Source = strings.Join(lines, "\n"); strings.TrimSpace(c.Source) != "" {
			cells = append(cells, c)
		}
	}
	return cells
}

// withoutResults leaves out the cells that use the values of "%result as NAME": a job does not have them. left are those cells' places,
// from 1, with the name.
func withoutResults(session []Cell) (cells []Cell, left []string) {
	var names []string
	for i, c := range session {
		names = append(names, resultNames(c.Source)...)
		if name := usedName(c.Source, names); name != "" {
			left = append(left, fmt.Sprintf("%d (it uses %s)", i+1, name))
			continue
		}
		cells = append(cells, c)
	}
	return cells, left
}

// resultNames are the values that a cell asks of %result.
func resultNames(source string) (names []string) {
	for line := range strings.Lines(source) {
		word, args, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "//gonb:")), " ")
		if word != "%result" {
			continue
		}
		if _, name, err := resultArgs(args); err == nil && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// usedName is the first of the names that the Go of a cell has, other than as a field or method.
func usedName(source string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	lines := strings.Split(source, "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimPrefix(line, "//gonb:"), "%") || strings.HasPrefix(line, "!") {
			lines[i] = ""
		}
	}
	text := []byte(strings.Join(lines, "\n"))
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("cell.go", -1, len(text)), text, func(token.Position, string) {}, 0)
	for last := token.ILLEGAL; ; {
		_, kind, word := s.Scan()
		switch {
		case kind == token.EOF:
			return ""
		case kind == token.IDENT && last != token.PERIOD && slices.Contains(names, word):
			return word
		}
		last = kind
	}
}

// asMain makes a cell a main cell.
func asMain(body string) string {
	for line := range strings.Lines(body) {
		word := strings.TrimSpace(strings.TrimPrefix(line, "//gonb:"))
		if word == "%%" || strings.HasPrefix(word, "%% ") || strings.HasPrefix(word, "%main") || strings.HasPrefix(word, "%exec") || strings.HasPrefix(word, "func main()") {
			return body
		}
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
