package stage

import (
	"slices"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/submit/executed"
	"gonbatch/submit/export"
)

// plan says what the run makes of the notebook's cells.
func (n Notebook) plan(m *export.Module, nb *nbformat.Notebook) (executed.Plan, error) {
	input, err := n.origin()
	if err != nil {
		return executed.Plan{}, err
	}
	plan := executed.Plan{Input: input, Steps: m.Steps, Parameters: n.Parameters, Version: "gonbatch " + Version()}
	for _, cell := range nb.Cells {
		isStep := slices.ContainsFunc(m.Steps, func(s rundir.Step) bool { return s.Cell == cell.Number })
		if export.Skips(cell) && !isStep {
			plan.LeftOut = append(plan.LeftOut, cell.Number)
		}
	}
	return plan, nil
}
