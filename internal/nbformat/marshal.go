package nbformat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
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

// encode returns the cell's fields.
func (c *Cell) encode() (map[string]json.RawMessage, error) {
	fields := maps.Clone(c.fields)
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	for name, value := range map[string]string{"cell_type": string(c.Type), "id": c.ID, "source": c.Source} {
		if fields[name] != nil || name == "id" && value == "" {
			continue
		}
		raw, err := marshal(value)
		if err != nil {
			return nil, err
		}
		fields[name] = raw
	}
	return fields, nil
}

// marshal is json.Marshal without the escapes for HTML.
func marshal(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSpace(out.Bytes()), err
}
