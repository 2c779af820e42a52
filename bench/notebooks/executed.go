package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
)

// executedCell is a cell of an executed notebook.
type executedCell struct {
	id       string
	text     string // What it has printed.
	pictures [][]byte
}

// executedCells returns the cells of a run's executed notebook.
func executedCells(d rundir.Dir) (cells []executedCell, err error) {
	text, err := os.ReadFile(d.Executed())
	if err != nil {
		return nil, err
	}
	notebook, err := nbformat.Parse(d.Executed(), text) // Read would leave out the outputs.
	if err != nil {
		return nil, err
	}
	for _, cell := range notebook.Cells {
		c := executedCell{id: cell.ID}
		if err := c.parse(cell.Field("outputs")); err != nil {
			return nil, fmt.Errorf("%s: %w", d.Executed(), err)
		}
		cells = append(cells, c)
	}
	return cells, nil
}

// parse reads a cell's outputs.
func (c *executedCell) parse(outputs json.RawMessage) error {
	var parsed []struct {
		Name string `json:"name"`
		Text string `json:"text"`
		Data struct {
			PNG string `json:"image/png"`
		} `json:"data"`
	}
	if outputs == nil {
		return nil // Of Markdown.
	}
	if err := json.Unmarshal(outputs, &parsed); err != nil {
		return err
	}
	for _, output := range parsed {
		if output.Name == "stdout" {
			c.text += output.Text
		}
		if output.Data.PNG == "" {
			continue
		}
		content, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(output.Data.PNG, "\n", ""))
		if err != nil {
			return err
		}
		c.pictures = append(c.pictures, content)
	}
	return nil
}

// drawnBy returns the last pictures of cells, at most most.
func drawnBy(cells []executedCell, most int) (all [][]byte) {
	for _, c := range cells {
		all = append(all, c.pictures...)
	}
	return all[max(0, len(all)-most):]
}

// printedBy returns the lines that the cell with an ID has printed.
func printedBy(cells []executedCell, id string) (lines []string) {
	for _, c := range cells {
		if id == "" || c.id != id {
			continue
		}
		for line := range strings.Lines(strings.TrimRight(c.text, "\n")) {
			lines = append(lines, strings.TrimRight(line, " \t\n"))
		}
	}
	return lines
}
