package executed

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gonbatch/internal/nbformat"
)

// bookCell is a code cell of the executed notebook.
type bookCell struct {
	cell  *nbformat.Cell
	notes cellNotes
	times cellTimes
	count int
	tape  tape
	dirty bool
}

// readCells reads the code cells of the notebook at path.
func readCells(nb *nbformat.Notebook, path string) ([]*bookCell, error) {
	var cells []*bookCell
	for _, cell := range nb.Cells {
		if cell.Type != nbformat.Code {
			continue
		}
		c, err := readCell(cell)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		cells = append(cells, c)
	}
	return cells, nil
}

// readCell reads a cell as Prepare, or an earlier recorder of the run, left it.
func readCell(cell *nbformat.Cell) (*bookCell, error) {
	c := &bookCell{cell: cell}
	if _, err := cell.GetMetadata(ownKey, &c.notes); err != nil {
		return nil, err
	}
	if _, err := cell.GetMetadata(papermillKey, &c.times); err != nil {
		return nil, err
	}
	var outputs []json.RawMessage
	for name, into := range map[string]any{"execution_count": &c.count, "outputs": &outputs} {
		if raw := cell.Field(name); raw != nil {
			if err := json.Unmarshal(raw, into); err != nil {
				return nil, fmt.Errorf("cell %d: %s: %w", cell.Number, name, err)
			}
		}
	}
	for _, output := range outputs {
		if err := c.load(output); err != nil {
			return nil, fmt.Errorf("cell %d: outputs: %w", cell.Number, err)
		}
	}
	return c, nil
}

// load adds an output from the file. It adds an error only if the cell does not run again.
func (c *bookCell) load(output json.RawMessage) error {
	var kind struct {
		Type string `json:"output_type"`
		Name string `json:"name"`
		Text any    `json:"text"`
	}
	if err := json.Unmarshal(output, &kind); err != nil {
		return err
	}
	switch kind.Type {
	case "stream":
		c.tape.write(kind.Name, []byte(joined(kind.Text)))
	case "error":
		if c.finished() {
			c.tape.fail(output)
		}
	default:
		c.tape.show(output)
	}
	return nil
}

// joined returns a string that is stored as one string or as lines.
func joined(text any) string {
	lines, ok := text.([]any)
	if !ok {
		return fmt.Sprint(text)
	}
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprint(&b, line)
	}
	return b.String()
}

// finished reports whether all of the job's cells made from this cell have succeeded.
func (c *bookCell) finished() bool {
	return !slices.ContainsFunc(c.notes.Cells, func(name string) bool { return !slices.Contains(c.notes.Done, name) })
}

// done notes that one of the job's cells made from c has succeeded, and reports whether all have
// now.
func (c *bookCell) done(name string) bool {
	if !slices.Contains(c.notes.Done, name) {
		c.notes.Done = append(c.notes.Done, name)
	}
	c.dirty = true
	return c.finished()
}

// store updates the notebook's cell with its outputs, times and notes.
func (c *bookCell) store(log string) error {
	if !c.dirty {
		return nil
	}
	c.dirty = false
	var count *int
	if c.count > 0 {
		count = &c.count
	}
	for _, field := range []struct {
		name  string
		value any
	}{{"outputs", c.tape.outputs(log)}, {"execution_count", count}} {
		if err := c.cell.SetField(field.name, field.value); err != nil {
			return err
		}
	}
	if err := c.cell.SetMetadata(papermillKey, c.times); err != nil {
		return err
	}
	return c.cell.SetMetadata(ownKey, c.notes)
}
