package nbcell

import (
	"fmt"
	"strings"
)

// Ref identifies a cell.
type Ref struct {
	// Notebook is the notebook's file name.
	Notebook string
	// Number is the cell's position among all cells, from 1; ID is its id, which may be empty.
	Number int
	ID     string
	// Heading is the nearest markdown heading above the cell, which may be empty.
	Heading string
}

// String returns the cell's name for messages: mnist.ipynb, cell 3 (id 4f2a, under "Training").
func (r Ref) String() string {
	var notes []string
	if r.ID != "" {
		notes = append(notes, "id "+r.ID)
	}
	if r.Heading != "" {
		notes = append(notes, fmt.Sprintf("under %q", r.Heading))
	}
	text := fmt.Sprintf("%s, cell %d", r.Notebook, r.Number)
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}

// Site is a place in a cell.
type Site struct {
	Ref
	// Line is the line in the cell, from 1.
	Line int
}
