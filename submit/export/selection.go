package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/internal/rundir"
)

// picks are the names given by --cell.
type picks []string

// direct reports whether one of the picks names the cell by tag, id or number.
func (p picks) direct(cell *cellInfo) bool {
	return slices.ContainsFunc(p, func(pick string) bool { return names(pick, cell) })
}

// names reports whether a pick is a tag, the id or the number of the cell.
func names(pick string, cell *cellInfo) bool {
	return cell.HasTag(pick) || pick != "" && pick == cell.ID || pick == strconv.Itoa(cell.Number)
}

// leftOut reports whether a tag leaves the cell out, and no pick puts it back.
func (p picks) leftOut(cell *cellInfo) bool {
	return Skips(cell.Cell) && !slices.ContainsFunc(p, func(pick string) bool {
		return !slices.Contains(SkipTags, pick) && names(pick, cell)
	})
}

// wants reports whether the step is picked; without picks all are.
func (p picks) wants(step string, cell *cellInfo) bool {
	return len(p) == 0 || slices.Contains(p, step) || p.direct(cell)
}

// check returns an error for a pick that matches no step.
func (p picks) check(nb string, all []rundir.Step, cells []*cellInfo) error {
	steps := stepNames(all)
	for _, pick := range p {
		if slices.Contains(steps, pick) {
			continue
		}
		var other *cellInfo
		for _, cell := range cells {
			if names(pick, cell) && (other == nil || !hasStep(all, other)) {
				other = cell
			}
		}
		switch {
		case other == nil:
			return fmt.Errorf("--cell %s: %s has no cell with that tag, id, number or name%s%s", pick, nb, suggestion(pick, steps), choices(steps))
		case !hasStep(all, other):
			return fmt.Errorf("--cell %s: %s is no main cell: it has no %%%%, %%main, %%exec or func main%s", pick, other.ref, choices(steps))
		}
	}
	return nil
}

// hasStep reports whether a cell has a step.
func hasStep(all []rundir.Step, cell *cellInfo) bool {
	return slices.ContainsFunc(all, func(step rundir.Step) bool { return step.Cell == cell.Number })
}

// suggestion names near steps.
func suggestion(pick string, steps []string) string {
	if near := gocell.Nearest(pick, steps); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// choices lists the steps.
func choices(steps []string) string {
	if len(steps) == 0 {
		return ""
	}
	return "\nthe notebook's cells are " + strings.Join(steps, ", ")
}

// codeCells are the code cells that are not left out.
func codeCells(cells []*cellInfo, p picks) []*cellInfo {
	return slices.DeleteFunc(slices.Clone(cells), func(cell *cellInfo) bool { return !isCode(cell) || p.leftOut(cell) })
}
