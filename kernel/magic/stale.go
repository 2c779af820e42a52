package magic

import (
	"fmt"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
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
