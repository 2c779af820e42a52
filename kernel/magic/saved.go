package magic

import (
	"encoding/json"
	"os"
	"strings"
)

// tagged gives the cells of a session the metadata that they have in the notebook as it was last saved: a client does not send the tags,
// such as notebook-only or a step's name. A cell is known by its id, or by its text.
func (m *Magics) tagged(cells []Cell) []Cell {
	byKey := m.savedMetadata()
	tagged := make([]Cell, len(cells))
	for i, c := range cells {
		for _, key := range keys(c) {
			if metadata, ok := byKey[key]; ok && c.metadata == nil {
				c.metadata = metadata
			}
		}
		tagged[i] = c
	}
	return tagged
}

// keys are what a cell is known by, the surest first.
func keys(c Cell) []string {
	text := "text " + strings.TrimSpace(strings.ReplaceAll(c.Source, "\r\n", "\n")) // as the kernel executes it
	if c.ID == "" {
		return []string{text}
	}
	return []string{"id " + c.ID, text}
}

// savedMetadata is the metadata of each code cell of the saved notebook. Without a file that can be read there is none: the session
// counts.
func (m *Magics) savedMetadata() map[string]json.RawMessage {
	byKey := map[string]json.RawMessage{}
	file := m.notebookFile()
	if file == "" {
		return byKey
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return byKey
	}
	var notebook struct {
		Cells []struct {
			ID       string          `json:"id"`
			Type     string          `json:"cell_type"`
			Source   lines           `json:"source"`
			Metadata json.RawMessage `json:"metadata"`
		} `json:"cells"`
	}
	if json.Unmarshal(text, &notebook) != nil {
		return byKey
	}
	for _, c := range notebook.Cells {
		for _, key := range keys(Cell{ID: c.ID, Source: string(c.Source)}) {
			if _, taken := byKey[key]; c.Type == "code" && !taken {
				byKey[key] = c.Metadata
			}
		}
	}
	return byKey
}

// lines is a text of a notebook: one string, or a list of them.
type lines string

// UnmarshalJSON reads either form.
func (l *lines) UnmarshalJSON(text []byte) error {
	var parts []string
	if json.Unmarshal(text, &parts) == nil {
		*l = lines(strings.Join(parts, ""))
		return nil
	}
	return json.Unmarshal(text, (*string)(l))
}
