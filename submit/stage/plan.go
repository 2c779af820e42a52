package stage

import (
	"slices"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/submit/executed"
	"gonbatch/submit/export"
	"gonbatch/submit/export/nbcell"
)

// plan returns what the run does with the notebook's cells.
func (n Notebook) plan(m *export.Module, nb *nbformat.Notebook) (executed.Plan, error) {
	input, err := n.origin()
	if err != nil {
		return executed.Plan{}, err
	}
	plan := executed.Plan{Input: input, Cells: m.Cells, Parameters: n.Parameters, Version: "gonbatch " + Version()}
	for _, cell := range nb.Cells {
		runs := slices.ContainsFunc(m.Cells, func(s rundir.Cell) bool { return s.Number == cell.Number })
		if nbcell.Skips(cell) && !runs {
			plan.LeftOut = append(plan.LeftOut, cell.Number)
		}
	}
	return plan, nil
}
