package build

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export"
	"gonbatch/submit/export/nbcell"
)

// declaredElsewhere says which cell declares a name that a message calls undefined: one after the
// main cell, or one that is not part of the job. It returns "" if none does.
func declaredElsewhere(m *export.Module, at nbcell.Ref, message string) string {
	key := gocell.Undefined(message)
	if key == "" {
		return ""
	}
	cells := slices.SortedFunc(maps.Values(m.Sources), func(a, b export.CellSource) int { return cmp.Compare(a.Number, b.Number) })
	for _, cell := range cells {
		switch {
		case !cell.LeftOut && cell.Number <= at.Number || !gocell.Declares(cell.Source, key):
		case cell.LeftOut:
			return fmt.Sprintf("; cell %s declares it, but its tag leaves that cell out of the job", cell.Label())
		default:
			return fmt.Sprintf("; cell %s declares it, after the main cell that needs it: move that cell above the main cell", cell.Label())
		}
	}
	return ""
}
