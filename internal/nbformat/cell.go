package nbformat

import (
	"encoding/json"
	"slices"
)

// CellType is the type of a cell's content.
type CellType string

// The cell types of nbformat 4.
const (
	Code     CellType = "code"
	Markdown CellType = "markdown"
	Raw      CellType = "raw"
)

// Cell is one cell of a notebook. Marshal writes what the file has for the cell, with the changes
// of SetField and SetMetadata, or the type, id and source of a new cell.
type Cell struct {
	// Type is code, markdown or raw.
	Type CellType
	// ID is the cell's id, introduced in nbformat 4.5; empty in older notebooks.
	ID string
	// Source is the cell's text; if the file has a list of lines, they are joined.
	Source string
	// Tags are the cell's tags, from metadata.tags.
	Tags []string
	// Number is the cell's position among all cells, from 1.
	Number int
	// Alias is the cell's label in the notebook's origin; "" without one.
	Alias string

	fields map[string]json.RawMessage
}

// HasTag reports whether the cell has the tag.
func (c *Cell) HasTag(tag string) bool { return slices.Contains(c.Tags, tag) }
