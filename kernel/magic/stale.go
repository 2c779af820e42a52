package magic

import (
	"fmt"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/internal/nbformat"
)

// warnStale warns of declarations that the session still has but no cell of a job: an edit has
// removed them from their cell, but GoNB keeps them. Cells that ran in the session may have used
// them.
func warnStale(s Session, cells []Cell) {
	var sources []string
	for _, c := range cells {
		sources = append(sources, c.Source)
	}
	has := gocell.Session(sources)
	stale := slices.DeleteFunc(slices.Clone(s.Declared()), func(key string) bool { return slices.Contains(has, key) })
	if len(stale) > 0 {
		s.Print(fmt.Sprintf("warning: the session still has %s, which no cell declares any more, so the job runs without: "+
			"forget it here too with %%rm %s, or declare it in a cell again\n", strings.Join(stale, ", "), strings.Join(stale, " ")))
	}
}

// savedCells returns the code cells of a notebook's file; none if it can't be read.
func savedCells(file string) (cells []Cell) {
	notebook, err := nbformat.Read(file)
	if err != nil {
		return nil
	}
	for _, c := range notebook.Cells {
		if c.Type == nbformat.Code {
			cells = append(cells, Cell{ID: c.ID, Source: c.Source})
		}
	}
	return cells
}
