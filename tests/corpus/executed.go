package corpus

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"

	"gonbatch/internal/rundir"
)

// streams returns what each code cell wrote according to the executed notebook of a run, by number.
func streams(dir rundir.Dir) (map[int]Cell, error) {
	data, err := os.ReadFile(dir.Executed())
	if err != nil {
		return nil, err
	}
	var notebook struct {
		Cells []struct {
			Type    string `json:"cell_type"`
			Outputs []struct {
				Name string
				Text text
				Data map[string]any
			}
		}
	}
	if err := json.Unmarshal(data, &notebook); err != nil {
		return nil, err
	}
	cells := map[int]Cell{}
	for i, c := range notebook.Cells {
		if c.Type != "code" {
			continue // A raw cell that is active in Go has no place for its output.
		}
		cell := Cell{Number: i + 1}
		kinds := map[string]bool{}
		for _, output := range c.Outputs {
			for kind := range output.Data {
				kinds[kind] = kind != "text/plain"
			}
			switch output.Name {
			case "stdout":
				cell.Stdout += string(output.Text)
			case "stderr":
				cell.Stderr += string(output.Text)
			}
		}
		maps.DeleteFunc(kinds, func(_ string, isRich bool) bool { return !isRich })
		cell.Rich = strings.Join(slices.Sorted(maps.Keys(kinds)), " ")
		cell.Stdout, cell.Stderr = stable(cell.Stdout, nil), stable(cell.Stderr, nil)
		cells[cell.Number] = cell
	}
	return cells, nil
}

// text is a string, or a list of its lines.
type text string

// UnmarshalJSON reads both forms.
func (t *text) UnmarshalJSON(data []byte) error {
	var lines []string
	if json.Unmarshal(data, &lines) == nil {
		*t = text(strings.Join(lines, ""))
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}
