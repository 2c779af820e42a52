package export

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"gonbatch/internal/nbformat"
)

// CellRef identifies a cell.
type CellRef struct {
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
func (r CellRef) String() string {
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
func (r CellRef) Label() string { return cmp.Or(r.Alias, strconv.Itoa(r.Number)) }

// CellError is a mistake in a cell.
type CellError struct {
	CellRef
	// Line and Col are the position in the cell, from 1; 0 if unknown.
	Line, Col int
	// Message describes the mistake and the fix.
	Message string
	// SourceLine is the text of the line.
	SourceLine string
}

// Error names the cell and the line, and quotes the line.
func (e *CellError) Error() string {
	text := e.String()
	if e.Line > 0 {
		text += fmt.Sprintf(", line %d", e.Line)
	}
	text += ": " + e.Message
	if e.SourceLine != "" {
		line, _ := Excerpt(strings.TrimSpace(e.SourceLine), e.Col)
		text += "\n\t" + line
	}
	return text
}

// longestLine is the number of bytes of a cell's line that a message quotes at most.
const longestLine = 160

// Excerpt cuts a cell's line to the part around a column that a message quotes; column is 0 if
// unknown. at is the column in the excerpt.
func Excerpt(line string, column int) (excerpt string, at int) {
	if len(line) <= longestLine {
		return line, column
	}
	begin := max(0, min(column-longestLine/2, len(line)-longestLine))
	end := begin + longestLine
	for begin > 0 && !utf8.RuneStart(line[begin]) {
		begin--
	}
	for end < len(line) && !utf8.RuneStart(line[end]) {
		end++
	}
	excerpt, at = line[begin:end], column
	if end < len(line) {
		excerpt += "..."
	}
	if begin > 0 {
		excerpt, at = "..."+excerpt, column-begin+len("...")
	}
	return excerpt, at
}

// Note is a remark for the user about a line of a cell.
type Note struct {
	CellRef
	// Line is the line in the cell, from 1.
	Line    int
	Message string
}

// String returns the message with the cell and the line.
func (n Note) String() string { return fmt.Sprintf("%s, line %d: %s", n.CellRef, n.Line, n.Message) }

// lineOf returns the text of line n of a cell, counted from 1.
func lineOf(cell *nbformat.Cell, n int) string {
	lines := strings.Split(cell.Source, "\n")
	if n < 1 || n > len(lines) {
		return ""
	}
	return lines[n-1]
}
