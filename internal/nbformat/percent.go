package nbformat

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// percentSuffix ends the names of files in jupytext's percent format: Go with lines "// %%" between
// the cells.
const percentSuffix = ".go"

// IsPercent reports, by its name, whether a file is in jupytext's percent format.
func IsPercent(path string) bool { return filepath.Ext(path) == percentSuffix }

// ParsePercent parses a notebook in jupytext's percent format, as written by jupytext, VS Code and
// others. Magics that jupytext has commented out become magics again. The name appears in error
// messages and becomes the notebook's Path.
func ParsePercent(name string, data []byte) (*Notebook, error) {
	if err := checkEncoding(data); err != nil {
		return nil, fmt.Errorf("notebook %s: %w", name, err)
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	header, lines, err := cutHeader(strings.Split(text, "\n"))
	if err != nil {
		return nil, fmt.Errorf("notebook %s: the header between // --- and // ---: %w", name, err)
	}
	cells, err := percentCells(lines)
	if err != nil {
		return nil, fmt.Errorf("notebook %s: %w", name, err)
	}
	if len(cells) == 0 {
		return nil, fmt.Errorf("notebook %s: it has no cell: begin each with a line // %%%%, as jupytext does", name)
	}
	notebook, err := json.Marshal(map[string]any{"nbformat": 4, "nbformat_minor": maxMinor, "metadata": header, "cells": cells})
	if err != nil {
		return nil, fmt.Errorf("notebook %s: %w", name, err)
	}
	return Parse(name, notebook)
}

// percentFence precedes and follows a notebook's own metadata.
const percentFence = "// ---"

// cutHeader returns the notebook's metadata, and the lines after it.
func cutHeader(lines []string) (metadata map[string]any, rest []string, err error) {
	language := map[string]any{"language_info": map[string]any{"name": "go"}}
	if lines[0] != percentFence {
		return language, lines, nil
	}
	end := slices.Index(lines[1:], percentFence)
	if end < 0 {
		return language, lines, nil
	}
	var header struct {
		Jupyter map[string]any
	}
	if err := yaml.Unmarshal([]byte(uncomment(lines[1:end+1])), &header); err != nil {
		return nil, nil, err
	}
	if header.Jupyter == nil {
		header.Jupyter = language
	}
	return header.Jupyter, lines[end+2:], nil
}

// uncomment removes the comment marks from lines and joins them.
func uncomment(lines []string) string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimPrefix(strings.TrimPrefix(line, "//"), " ")
	}
	return strings.Join(out, "\n")
}

// percentMark begins a cell. A title, [markdown] or [raw], and metadata as key=JSON may follow.
var percentMark = regexp.MustCompile(`^// ?%%(%*)([ \t].*)?$`)

// percentCells splits lines into cells, in the form of a notebook's JSON.
func percentCells(lines []string) (cells []map[string]any, err error) {
	start, mark := 0, ""
	for i := 0; i <= len(lines); i++ {
		if i < len(lines) && !percentMark.MatchString(lines[i]) {
			continue
		}
		body := trimBlank(lines[start:i])
		if mark != "" || len(body) > 0 { // The text above the first mark is a cell too.
			cell, err := percentCell(mark, body, len(cells)+1)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", start, err)
			}
			cells = append(cells, cell)
		}
		if i < len(lines) {
			mark, start = lines[i], i+1
		}
	}
	return cells, nil
}

// trimBlank drops the blank lines around a cell.
func trimBlank(lines []string) []string {
	blank := func(line string) bool { return strings.TrimSpace(line) == "" }
	for len(lines) > 0 && blank(lines[0]) {
		lines = lines[1:]
	}
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// percentCell returns a cell with this mark and these lines.
func percentCell(mark string, body []string, number int) (map[string]any, error) {
	kind, metadata, err := readMark(mark)
	if err != nil {
		return nil, err
	}
	cell := map[string]any{"cell_type": kind, "id": fmt.Sprintf("cell-%d", number), "metadata": metadata}
	source := uncomment(body)
	if kind == Code {
		cell["execution_count"], cell["outputs"] = nil, []any{}
		source = percentCode(body, metadata)
		delete(metadata, "language")
	}
	cell["source"] = source
	return cell, nil
}

// markKey matches the name of a value in a mark.
var markKey = regexp.MustCompile(`(^|\s)([A-Za-z_][\w.-]*)=`)

// readMark parses the kind and the metadata of a cell in its mark.
func readMark(mark string) (kind CellType, metadata map[string]any, err error) {
	kind, metadata = Code, map[string]any{}
	rest := ""
	if m := percentMark.FindStringSubmatch(mark); m != nil {
		rest = strings.TrimSpace(m[2])
	}
	first := markKey.FindStringIndex(rest)
	title := rest
	if first != nil {
		title, rest = rest[:first[0]], rest[first[0]:]
	} else {
		rest = ""
	}
	switch {
	case strings.Contains(title, "[markdown]"), strings.Contains(title, "[md]"):
		kind = Markdown
	case strings.Contains(title, "[raw]"):
		kind = Raw
	}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		m := markKey.FindStringSubmatchIndex(rest)
		if m == nil || m[0] != 0 {
			return kind, nil, fmt.Errorf("%q in the mark of a cell is not NAME=JSON", rest)
		}
		decoder := json.NewDecoder(strings.NewReader(rest[m[1]:]))
		var value any
		if err := decoder.Decode(&value); err != nil {
			return kind, nil, fmt.Errorf("%s in the mark of a cell: %w", rest[m[4]:m[5]], err)
		}
		metadata[rest[m[4]:m[5]]] = value
		rest = rest[m[1]+int(decoder.InputOffset()):]
	}
	return kind, metadata, nil
}

// percentCode returns the source of a code cell. A cell in another language, or not active in Go,
// is uncommented as a whole; in other cells only magics are.
func percentCode(body []string, metadata map[string]any) string {
	if language, ok := metadata["language"].(string); ok && language != "" {
		return "%%" + language + "\n" + uncomment(body)
	}
	if inactiveInGo(metadata["tags"]) {
		return uncomment(body)
	}
	out := make([]string, len(body))
	for i, line := range body {
		out[i] = percentLine(line)
	}
	return strings.Join(out, "\n")
}

// inactiveInGo reports whether the tags make a cell active only elsewhere, so that jupytext
// commented it out.
func inactiveInGo(tags any) bool {
	list, _ := tags.([]any)
	return slices.ContainsFunc(list, func(tag any) bool {
		places, ok := strings.CutPrefix(fmt.Sprint(tag), "active-")
		return ok && !slices.Contains(strings.Split(places, "-"), "go")
	})
}

// magicComment matches a magic that jupytext has commented out, or a comment that looks like one
// and has another mark in front.
var magicComment = regexp.MustCompile(`^(// )*//\s?(%{1,2}[A-Za-z]|![^=\s])`)

// percentLine returns a line of a code cell.
func percentLine(line string) string {
	if magicComment.MatchString(line) {
		return strings.TrimPrefix(strings.TrimPrefix(line, "//"), " ")
	}
	return line
}
