package nbformat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Marshal encodes the notebook in Jupyter's format: keys sorted, one space of indent, a newline at
// the end. It includes every field that the notebook was read with.
func (nb *Notebook) Marshal() ([]byte, error) {
	fields := maps.Clone(nb.fields)
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	cells := make([]map[string]json.RawMessage, len(nb.Cells))
	for i, c := range nb.Cells {
		cell, err := c.encode()
		if err != nil {
			return nil, fmt.Errorf("notebook %s: cell %d: %w", nb.Path, i+1, err)
		}
		cells[i] = cell
	}
	raw, err := marshal(cells)
	if err != nil {
		return nil, fmt.Errorf("notebook %s: %w", nb.Path, err)
	}
	fields["cells"] = raw
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(fields); err != nil {
		return nil, fmt.Errorf("notebook %s: %w", nb.Path, err)
	}
	return out.Bytes(), nil
}

// encode returns the cell's fields, with the changes that a caller made.
func (c *Cell) encode() (map[string]json.RawMessage, error) {
	fields := maps.Clone(c.fields)
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	set := func(key string, value any) error {
		raw, err := marshal(value)
		fields[key] = raw
		return err
	}
	if err := set("cell_type", c.Type); err != nil {
		return nil, err
	}
	if c.ID != c.read.id {
		if err := set("id", c.ID); err != nil {
			return nil, err
		}
	}
	if c.Source != c.read.source || fields["source"] == nil {
		if err := set("source", c.encodeSource()); err != nil {
			return nil, err
		}
	}
	if !slices.Equal(c.Tags, c.read.tags) {
		metadata, err := setMetadata(fields["metadata"], "tags", c.Tags)
		if err != nil {
			return nil, err
		}
		return fields, set("metadata", metadata)
	}
	return fields, nil
}

// encodeSource returns the source in the form that it had in the file.
func (c *Cell) encodeSource() any {
	if !c.sourceList {
		return c.Source
	}
	lines := strings.SplitAfter(c.Source, "\n")
	if n := len(lines); lines[n-1] == "" {
		lines = lines[:n-1]
	}
	return lines
}

// marshal is json.Marshal without the escapes for HTML.
func marshal(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSpace(out.Bytes()), err
}
