// Package nbcell names places in a notebook's cells, for the errors, notes and //line directives of
// an export, and reads the cells' tags. It knows nothing of magics (internal/gocell does) and makes
// no programs.
//
//	for _, cell := range nbcell.Describe(nb) {
//		if cell.IsCode() && !nbcell.Skips(cell.Cell) {
//			return cell.Errorf(12, "...") // mnist.ipynb, cell 3 (under "Training"), line 12: ...
//		}
//	}
package nbcell

import (
	"fmt"
	"strings"
	"unicode"

	"gonbatch/internal/nbformat"
)

// Cell is a cell with its context in the notebook.
type Cell struct {
	*nbformat.Cell
	// Ref identifies the cell in messages.
	Ref Ref
	// File names the cell in //line directives.
	File string
}

// Describe returns the notebook's cells, each with the heading above it and its name in //line
// directives.
func Describe(nb *nbformat.Notebook) []*Cell {
	name := Printable(nb.Name())
	heading := ""
	described := make([]*Cell, len(nb.Cells))
	for i, cell := range nb.Cells {
		if cell.Type == nbformat.Markdown {
			if h := lastHeading(cell.Source); h != "" {
				heading = h
			}
		}
		described[i] = &Cell{
			Cell: cell,
			Ref:  Ref{Notebook: name, Number: cell.Number, Alias: cell.Alias, ID: cell.ID, Heading: heading},
			File: fmt.Sprintf("%s[cell %s]", name, cell.Label()),
		}
	}
	return described
}

// Errorf returns the error for a mistake in a line of the cell; line 0 is the whole cell.
func (c *Cell) Errorf(line int, format string, args ...any) *Error {
	return &Error{Ref: c.Ref, Line: line, Message: fmt.Sprintf(format, args...), SourceLine: lineOf(c.Cell, line)}
}

// lineOf returns the text of line n of a cell, counted from 1.
func lineOf(cell *nbformat.Cell, n int) string {
	lines := strings.Split(cell.Source, "\n")
	if n < 1 || n > len(lines) {
		return ""
	}
	return lines[n-1]
}

// Printable makes a name safe for a line of Go source: it replaces runes that would end the line or
// can't be shown with "_".
func Printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
}
