package nbformat

import (
	"encoding/json"
	"slices"
)

// CellType is what a cell holds.
type CellType string

// The cell types of nbformat 4.
const (
	Code     CellType = "code"
	Markdown CellType = "markdown"
	Raw      CellType = "raw"
)

// Cell is one cell of a notebook. Changes to ID, Source and Tags are written by Marshal; everything
// else that the file had for the cell (outputs, attachments, metadata of other tools) stays as it
// was.
type Cell struct {
	// Type is code, markdown or raw.
	Type CellType
	// ID is the cell's id, which nbformat 4.5 has; older notebooks have none.
	ID string
	// Source is the cell's text; its lines are joined where the file has a list.
	Source string
	// Tags are the cell's tags, as metadata.tags has them.
	Tags []string
	// Number is the cell's position among all cells, from 1.
	Number int

	fields     map[string]json.RawMessage
	sourceList bool
	read       cellText
}

// cellText is what the file said, to tell whether a caller changed it.
type cellText struct {
	id, source string
	tags       []string
}

// HasTag reports whether the cell has the tag.
func (c *Cell) HasTag(tag string) bool { return slices.Contains(c.Tags, tag) }
