package export

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"gonbatch/internal/nbformat"
	"gonbatch/submit/export/script"
)

// cellInfo is a cell with its context in the notebook.
type cellInfo struct {
	*nbformat.Cell
	ref CellRef
	// file names the cell in //line directives.
	file string
}

// errorf returns the error for a mistake in a line of the cell; line 0 is the whole cell.
func (c *cellInfo) errorf(line int, format string, args ...any) *CellError {
	return &CellError{CellRef: c.ref, Line: line, Message: fmt.Sprintf(format, args...), SourceLine: lineOf(c.Cell, line)}
}

// script returns the script for a cell of the job that comes from c.
func (c *cellInfo) script(place string, mayFail bool) script.Script {
	return script.Script{Notebook: c.ref.Notebook, Place: place, MayFail: mayFail}
}

// describeCells finds each cell's heading and its name in //line directives.
func describeCells(nb *nbformat.Notebook) []*cellInfo {
	name := printable(nb.Name())
	heading := ""
	infos := make([]*cellInfo, len(nb.Cells))
	for i, cell := range nb.Cells {
		if cell.Type == nbformat.Markdown {
			if h := lastHeading(cell.Source); h != "" {
				heading = h
			}
		}
		infos[i] = &cellInfo{
			Cell: cell,
			ref:  CellRef{Notebook: name, Number: cell.Number, Alias: cell.Alias, ID: cell.ID, Heading: heading},
			file: fmt.Sprintf("%s[cell %s]", name, cell.Label()),
		}
	}
	return infos
}

// printable makes a file name safe for a line of Go source: it replaces runes that would end the
// line or can't be shown with "_".
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
}

// headingLine matches a Markdown heading.
var headingLine = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$`)

// lastHeading returns the last heading of a Markdown text, ignoring code fences.
func lastHeading(text string) string {
	heading, fenced := "", false
	for _, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
			fenced = !fenced
			continue
		}
		if m := headingLine.FindStringSubmatch(strings.TrimRight(line, "\r")); m != nil && !fenced && m[1] != "" {
			heading = printable(m[1])
		}
	}
	return heading
}
