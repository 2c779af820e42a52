package build

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export"
	"gonbatch/submit/export/nbcell"
)

// declaredElsewhere says which cell declares a name that a message calls undefined: one after the
// main cell, one that is not part of the job, or one above a cell that removes the declaration. It
// returns "" if none does.
func declaredElsewhere(m *export.Module, at nbcell.Ref, message string) string {
	key := gocell.Undefined(message)
	if key == "" {
		return ""
	}
	cells := slices.SortedFunc(maps.Values(m.Sources), func(a, b export.CellSource) int { return cmp.Compare(a.Number, b.Number) })
	if removed := removedBelow(cells, key); removed != "" {
		return removed
	}
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

// removedBelow says which cell removes a declaration, if none below it declares the name again.
func removedBelow(cells []export.CellSource, key string) (removed string) {
	declaring := ""
	for _, cell := range cells {
		if cell.LeftOut {
			continue
		}
		if call, ok := gocell.Forgetting(cell.Source, key); ok && declaring != "" {
			line := strings.TrimSpace(call.Name() + " " + call.Rest())
			removed = fmt.Sprintf("; cell %s declares it, but cell %s, line %d removes it: %s; a job runs the cells from top to bottom: delete that line, or move it above cell %s",
				declaring, cell.Label(), call.Line, line, declaring)
		}
		if gocell.Declares(cell.Source, key) {
			declaring, removed = cell.Label(), ""
		}
	}
	return removed
}
