package executed

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// Prepare writes the executed notebook of a run that has not begun: without outputs, every cell
// pending. It removes the outputs from nb.
func Prepare(dir rundir.Dir, nb *nbformat.Notebook, plan Plan) error {
	return prepare(dir, nb, plan, "", nil)
}

// prepare implements Prepare; old are the cells of an earlier run whose outputs are reused, by the
// number of the cell that has them now.
func prepare(dir rundir.Dir, nb *nbformat.Notebook, plan Plan, earlier string, old map[int]*bookCell) error {
	for _, cell := range nb.Cells {
		if cell.Type != nbformat.Code {
			continue
		}
		notes := cellNotes{Alias: cell.Alias, LeftOut: slices.Contains(plan.LeftOut, cell.Number), Cells: plan.names(cell.Number)}
		if err := prepareCell(cell, notes, earlier, old[cell.Number]); err != nil {
			return fmt.Errorf("%s: %w", dir.Executed(), err)
		}
	}
	run := cmp.Or(plan.Run, dir)
	parameters := map[string]string{} // For papermill, not null.
	maps.Copy(parameters, plan.Parameters)
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

// prepareCell removes a cell's outputs, or reuses those of old if that isn't nil.
func prepareCell(cell *nbformat.Cell, notes cellNotes, earlier string, old *bookCell) error {
	outputs, count, times := json.RawMessage("[]"), json.RawMessage(nil), cellTimes{Status: pending}
	if old != nil {
		notes.Done, notes.Reused = notes.Cells, cmp.Or(old.notes.Reused, earlier)
		outputs, count, times = old.cell.Field("outputs"), old.cell.Field("execution_count"), old.times
	}
	return errors.Join(
		cell.SetField("outputs", outputs), cell.SetField("execution_count", count),
		cell.SetMetadata(papermillKey, times), cell.SetMetadata(ownKey, notes),
	)
}
