package magic

import (
	"slices"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/internal/nbformat"
)

// tagged adds to the cells of a session their metadata and numbers from the notebook as it was last
// saved: clients don't send the tags, such as notebook-only or a main cell's name. A cell is found
// by its id, or else by its text. No two cells get the same number.
func (m *Magics) tagged(cells []Cell) []Cell {
	tagged, saved := slices.Clone(cells), m.savedCells()
	for i, c := range tagged {
		found := func(s *nbformat.Cell) bool { return c.ID != "" && c.ID == s.ID }
		if at := slices.IndexFunc(saved, found); at >= 0 {
			tagged[i].placed, tagged[i].number, tagged[i].metadata = true, saved[at].Number, saved[at].Field("metadata")
			saved = slices.Delete(saved, at, at+1)
		}
	}
	for i, c := range tagged {
		found := func(s *nbformat.Cell) bool { return c.number == 0 && plainText(c.Source) == plainText(s.Source) }
		if at := slices.IndexFunc(saved, found); at >= 0 {
			tagged[i].number, tagged[i].metadata = saved[at].Number, saved[at].Field("metadata")
			saved = slices.Delete(saved, at, at+1)
		}
	}
	return tagged
}

// plainText returns a cell's text as the kernel executes it.
func plainText(source string) string { return strings.TrimSpace(gocell.PlainLines(source)) }

// Declaring returns the number, from 1, of the cell of the saved notebook that declares a key, as
// defined by gocell.Declares; 0 if there is none.
func (m *Magics) Declaring(key string) int {
	for _, c := range m.savedCells() {
		if gocell.Declares(c.Source, key) {
			return c.Number
		}
	}
	return 0
}

// savedCells returns the code cells of the saved notebook. It returns none if there is not a
// readable file: then only the session counts.
func (m *Magics) savedCells() []*nbformat.Cell {
	notebook, err := nbformat.Read(m.notebookFile())
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(notebook.Cells, func(c *nbformat.Cell) bool { return c.Type != nbformat.Code })
}
