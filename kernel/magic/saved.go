package magic

import (
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/internal/nbformat"
)

// tagged adds to the cells of a session their metadata and numbers from the notebook as it was last
// saved: clients don't send the tags, such as notebook-only or a main cell's name. A cell is found
// by its id, or by its text.
func (m *Magics) tagged(cells []Cell) []Cell {
	byKey := m.savedCells()
	tagged := make([]Cell, len(cells))
	for i, c := range cells {
		for _, key := range keys(c) {
			if saved, ok := byKey[key]; ok && c.number == 0 {
				c.metadata, c.number = saved.Field("metadata"), saved.Number
				c.placed = strings.HasPrefix(key, "id ")
			}
		}
		tagged[i] = c
	}
	return tagged
}

// keys returns the keys by which a cell is found, the most reliable first.
func keys(c Cell) []string {
	text := "text " + strings.TrimSpace(gocell.PlainLines(c.Source)) // as the kernel executes it
	if c.ID == "" {
		return []string{text}
	}
	return []string{"id " + c.ID, text}
}

// Declaring returns the number, from 1, of the cell of the saved notebook that declares a key, as
// defined by gocell.Declares; 0 if there is none.
func (m *Magics) Declaring(key string) int {
	notebook, err := nbformat.Read(m.notebookFile())
	if err != nil {
		return 0
	}
	for _, c := range notebook.Cells {
		if c.Type == nbformat.Code && gocell.Declares(c.Source, key) {
			return c.Number
		}
	}
	return 0
}

// savedCells returns the code cells of the saved notebook, by their keys. It returns none if there
// is not a readable file: then only the session counts.
func (m *Magics) savedCells() map[string]*nbformat.Cell {
	byKey := map[string]*nbformat.Cell{}
	notebook, err := nbformat.Read(m.notebookFile())
	if err != nil {
		return byKey
	}
	for _, c := range notebook.Cells {
		for _, key := range keys(Cell{ID: c.ID, Source: c.Source}) {
			if _, taken := byKey[key]; c.Type == nbformat.Code && !taken {
				byKey[key] = c
			}
		}
	}
	return byKey
}
