package corpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
)

// document is the complete JSON of a notebook file.
type document map[string]any

func readDocument(path string) (d document, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if _, ok := d["cells"].([]any); !ok {
		return nil, fmt.Errorf("%s: no cells: convert it with jupyter nbconvert --to notebook", path)
	}
	return d, nil
}

// write writes the notebook to a file, and makes it writable.
func (d document) write(path string) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path, data, 0o644), os.Chmod(path, 0o644))
}

// codeCells yields the code cells, with their positions among all cells, from 1.
func (d document) codeCells() iter.Seq2[int, map[string]any] {
	return func(yield func(int, map[string]any) bool) {
		cells, _ := d["cells"].([]any)
		for i, c := range cells {
			if cell, ok := c.(map[string]any); ok && cell["cell_type"] == "code" && !yield(i+1, cell) {
				return
			}
		}
	}
}

// replace changes the source of each cell.
func (d document) replace(all []Replacement) {
	for _, cell := range d.codeCells() {
		source := sourceOf(cell)
		for _, r := range all {
			source = r.Find.ReplaceAllString(source, r.With)
		}
		cell["source"] = source
	}
}

// sourceOf returns a cell's source, which is a string or a list of lines.
func sourceOf(cell map[string]any) string {
	lines, ok := cell["source"].([]any)
	if !ok {
		source, _ := cell["source"].(string)
		return source
	}
	var b strings.Builder
	for _, line := range lines {
		text, _ := line.(string)
		b.WriteString(text)
	}
	return b.String()
}

// prepend adds a code cell before all others.
func (d document) prepend(source string) {
	if source == "" {
		return
	}
	cells, _ := d["cells"].([]any)
	first := map[string]any{"cell_type": "code", "metadata": map[string]any{}, "outputs": []any{}, "execution_count": nil, "source": source}
	d["cells"] = append([]any{first}, cells...)
}

// tag adds a tag to a cell, given its number.
func (d document) tag(number int, tag string) {
	for n, cell := range d.codeCells() {
		if n != number {
			continue
		}
		metadata, ok := cell["metadata"].(map[string]any)
		if !ok {
			metadata = map[string]any{}
			cell["metadata"] = metadata
		}
		tags, _ := metadata["tags"].([]any)
		metadata["tags"] = append(tags, tag)
	}
}
