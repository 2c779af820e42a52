package nbcell

import "fmt"

// Note is a remark for the user about a line of a cell.
type Note struct {
	Ref
	// Line is the line in the cell, from 1.
	Line    int
	Message string
}

// String returns the message with the cell and the line.
func (n Note) String() string { return fmt.Sprintf("%s, line %d: %s", n.Ref, n.Line, n.Message) }
