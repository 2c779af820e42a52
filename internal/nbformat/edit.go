package nbformat

import (
	"encoding/json"
	"fmt"
)

// Field returns a field of the cell as in the file ("outputs", "execution_count"), or nil.
func (c *Cell) Field(name string) json.RawMessage { return c.fields[name] }

// SetField sets a field of the cell, which Marshal writes.
func (c *Cell) SetField(name string, value any) error {
	raw, err := marshal(value)
	if err != nil {
		return fmt.Errorf("cell %d: %s: %w", c.Number, name, err)
	}
	if c.fields == nil {
		c.fields = map[string]json.RawMessage{}
	}
	c.fields[name] = raw
	return nil
}

// GetMetadata decodes one of the cell's metadata values into value, and reports whether the cell
// has it.
func (c *Cell) GetMetadata(name string, value any) (bool, error) {
	return getMetadata(c.fields["metadata"], name, value)
}

// SetMetadata sets one of the cell's metadata values, which Marshal writes. The others stay.
func (c *Cell) SetMetadata(name string, value any) error {
	all, err := setMetadata(c.fields["metadata"], name, value)
	if err != nil {
		return fmt.Errorf("cell %d: metadata %s: %w", c.Number, name, err)
	}
	return c.SetField("metadata", all)
}

// GetMetadata decodes one of the notebook's metadata values into value, and reports whether the
// notebook has it.
func (nb *Notebook) GetMetadata(name string, value any) (bool, error) {
	return getMetadata(nb.fields["metadata"], name, value)
}

// SetMetadata sets one of the notebook's metadata values, which Marshal writes. The others stay.
func (nb *Notebook) SetMetadata(name string, value any) error {
	raw, err := setMetadata(nb.fields["metadata"], name, value)
	if err != nil {
		return fmt.Errorf("notebook %s: metadata %s: %w", nb.Path, name, err)
	}
	if nb.fields == nil {
		nb.fields = map[string]json.RawMessage{}
	}
	nb.fields["metadata"] = raw
	return nil
}

func getMetadata(raw json.RawMessage, name string, value any) (bool, error) {
	all := map[string]json.RawMessage{}
	if raw != nil {
		if err := json.Unmarshal(raw, &all); err != nil {
			return false, fmt.Errorf("metadata: %w", err)
		}
	}
	one, ok := all[name]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(one, value); err != nil {
		return true, fmt.Errorf("metadata %s: %w", name, err)
	}
	return true, nil
}

func setMetadata(raw json.RawMessage, name string, value any) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if raw != nil {
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, err
		}
	}
	if all == nil { // The file has null.
		all = map[string]json.RawMessage{}
	}
	one, err := marshal(value)
	if err != nil {
		return nil, err
	}
	all[name] = one
	return marshal(all)
}
