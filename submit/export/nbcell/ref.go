package nbcell

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

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
