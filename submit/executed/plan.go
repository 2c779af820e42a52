package executed

import (
	"cmp"
	"fmt"
	"slices"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
)

// Plan describes what a run does with a notebook.
type Plan struct {
	// Run is the run directory if the notebook is written to another folder that will become it.
	Run rundir.Dir
	// Input is the notebook's path.
	Input string
	// Cells are the job's cells, in execution order.
	Cells []rundir.Cell
	// LeftOut are the numbers of the code cells that are not part of the job.
	LeftOut []int
	// Parameters are the values given for the notebook's parameters.
	Parameters map[string]string
	// Version is gonbatch's version.
	Version string
}

// names returns the names of the job's cells that a cell of the notebook becomes.
func (p Plan) names(number int) (names []string) {
	for _, cell := range p.Cells {
		if cell.Number == number {
			names = append(names, cell.Name)
		}
	}
	return names
}

// leavesOut reports whether a cell is not part of the job.
func (p Plan) leavesOut(cell int) bool { return slices.Contains(p.LeftOut, cell) }

// Prepare writes the executed notebook of a run that has not begun: without outputs, every cell
// pending. It removes the outputs from nb.
func Prepare(dir rundir.Dir, nb *nbformat.Notebook, plan Plan) error {
	return prepare(dir, nb, plan, func(*nbformat.Cell, *cellNotes) (*cellTimes, error) { return nil, nil })
}

// prepare implements Prepare; reuse may add a cell's outputs from an earlier run.
func prepare(dir rundir.Dir, nb *nbformat.Notebook, plan Plan, reuse func(*nbformat.Cell, *cellNotes) (*cellTimes, error)) error {
	for _, cell := range nb.Cells {
		if cell.Type != nbformat.Code {
			continue
		}
		notes := cellNotes{Alias: cell.Alias, LeftOut: plan.leavesOut(cell.Number), Cells: plan.names(cell.Number)}
		if err := prepareCell(cell, notes, reuse); err != nil {
			return fmt.Errorf("%s: %w", dir.Executed(), err)
		}
	}
	run := cmp.Or(plan.Run, dir)
	parameters := map[string]any{}
	for name, value := range plan.Parameters {
		parameters[name] = value
	}
	err := nb.SetMetadata(papermillKey, runTimes{
		Parameters: parameters, DefaultParameters: map[string]any{}, Environment: map[string]any{},
		InputPath: plan.Input, OutputPath: run.Executed(), Version: plan.Version,
	})
	if err == nil {
		err = nb.SetMetadata(ownKey, runNotes{Run: run.Name(), State: pending})
	}
	if err != nil {
		return err
	}
	if err := nb.DropOrigin(); err != nil {
		return err
	}
	data, err := nb.Marshal()
	if err != nil {
		return err
	}
	return rundir.WriteFileAtomic(dir.Executed(), data, 0o600)
}

func prepareCell(cell *nbformat.Cell, notes cellNotes, reuse func(*nbformat.Cell, *cellNotes) (*cellTimes, error)) error {
	if err := cell.SetField("outputs", []any{}); err != nil {
		return err
	}
	if err := cell.SetField("execution_count", nil); err != nil {
		return err
	}
	times, err := reuse(cell, &notes)
	if err != nil {
		return err
	}
	if times == nil {
		times = &cellTimes{Status: pending}
	}
	if err := cell.SetMetadata(papermillKey, times); err != nil {
		return err
	}
	return cell.SetMetadata(ownKey, notes)
}
