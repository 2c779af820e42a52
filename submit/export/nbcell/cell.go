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
	"cmp"
	"fmt"
	"regexp"
	"strconv"
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

// headingLine matches a Markdown heading.
var headingLine = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$`)

// Heading returns the text of a line that is a Markdown heading, and "" for any other line.
func Heading(line string) string {
	if m := headingLine.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}

// lastHeading returns the last heading of a Markdown text, ignoring code fences.
func lastHeading(text string) string {
	heading, fenced := "", false
	for _, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
			fenced = !fenced
			continue
		}
		if h := Heading(strings.TrimRight(line, "\r")); h != "" && !fenced {
			heading = Printable(h)
		}
	}
	return heading
}

// Ref identifies a cell.
type Ref struct {
	// Notebook is the notebook's file name.
	Notebook string
	// Number is the cell's position among all cells, from 1; ID is its id, which may be empty.
	Number int
	ID     string
	// Alias is the cell's label in the notebook's origin (nbformat.Origin); "" without one.
	Alias string
	// Heading is the nearest markdown heading above the cell, which may be empty.
	Heading string
}

// String returns the cell's name for messages: mnist.ipynb, cell 3 (id 4f2a, under "Training").
func (r Ref) String() string {
	var notes []string
	if r.ID != "" && r.Alias == "" {
		notes = append(notes, "id "+r.ID)
	}
	if r.Heading != "" {
		notes = append(notes, fmt.Sprintf("under %q", r.Heading))
	}
	text := fmt.Sprintf("%s, cell %s", r.Notebook, r.Label())
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}

// Label returns what messages call the cell after the word "cell".
func (r Ref) Label() string { return cmp.Or(r.Alias, strconv.Itoa(r.Number)) }

// Site is a place in a cell.
type Site struct {
	Ref
	// Line is the line in the cell, from 1.
	Line int
}
