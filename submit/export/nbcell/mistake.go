package nbcell

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error is a mistake in a cell.
type Error struct {
	Ref
	// Line and Col are the position in the cell, from 1; 0 if unknown.
	Line, Col int
	// Message describes the mistake and the fix.
	Message string
	// SourceLine is the text of the line.
	SourceLine string
}

// Error names the cell and the line, and quotes the line.
func (e *Error) Error() string {
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
	Ref
	// Line is the line in the cell, from 1.
	Line    int
	Message string
}

// String returns the message with the cell and the line.
func (n Note) String() string { return fmt.Sprintf("%s, line %d: %s", n.Ref, n.Line, n.Message) }
