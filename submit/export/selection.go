package export

import (
	"fmt"
	"slices"
	"strings"

	"gonbatch/internal/nearest"
	"gonbatch/internal/rundir"
	"gonbatch/submit/export/nbcell"
)

// picks are the arguments of --cell.
type picks []string

// names reports whether a pick is a tag, the id or the number of the cell.
func names(pick string, cell *nbcell.Cell) bool {
	return cell.HasTag(pick) || pick != "" && pick == cell.ID || pick == cell.Label()
}

// leftOut reports whether a tag leaves the cell out and no pick includes it.
func (p picks) leftOut(cell *nbcell.Cell) bool {
	return nbcell.Skips(cell.Cell) && !slices.ContainsFunc(p, func(pick string) bool {
		return !slices.Contains(nbcell.SkipTags, pick) && names(pick, cell)
	})
}

// wants reports whether the cell, called name in the job, is picked; without picks all cells are.
func (p picks) wants(name string, cell *nbcell.Cell) bool {
	return len(p) == 0 || slices.ContainsFunc(p, func(pick string) bool { return pick == name || names(pick, cell) })
}

// check returns an error for a pick that matches no cell.
func (p picks) check(nb string, all []rundir.Cell, cells []*nbcell.Cell) error {
	choice := cellNames(all)
	for _, pick := range p {
		if slices.Contains(choice, pick) {
			continue
		}
		var other *nbcell.Cell
		for _, cell := range cells {
			if names(pick, cell) && (other == nil || !runs(all, other)) {
				other = cell
			}
		}
		switch {
		case other == nil:
			return fmt.Errorf("--cell %s: %s has no cell with that tag, id, number or name%s%s", pick, nb, suggestion(pick, choice), choices(choice))
		case !runs(all, other):
			return fmt.Errorf("--cell %s: %s is not a main cell: it has no %%%%, %%main, %%exec or func main%s", pick, other.Ref, choices(choice))
		}
	}
	return nil
}

// runs reports whether the job runs a program or command of a cell.
func runs(all []rundir.Cell, cell *nbcell.Cell) bool {
	return slices.ContainsFunc(all, func(made rundir.Cell) bool { return made.Number == cell.Number })
}

// suggestion names cells with a similar name.
func suggestion(pick string, choice []string) string {
	if near := nearest.Words(pick, choice); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// choices lists the names of cells for a message.
func choices(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "\nthe notebook's cells are " + strings.Join(names, ", ")
}
