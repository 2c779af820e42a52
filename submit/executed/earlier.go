package executed

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// Earlier is an earlier run of a notebook whose first cells need not run again.
type Earlier struct {
	dir   rundir.Dir
	cells []*bookCell
	times runTimes
}

// ReadEarlier reads the executed notebook of a run.
func ReadEarlier(dir rundir.Dir) (*Earlier, error) {
	data, err := rundir.ReadNotebook(dir.Executed())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("run %s has no executed notebook to take outputs from: run all cells", dir.Name())
	}
	if err != nil {
		return nil, err
	}
	nb, err := nbformat.Parse(dir.Executed(), data)
	if err != nil {
		return nil, err
	}
	e := &Earlier{dir: dir}
	if _, err := nb.GetMetadata(papermillKey, &e.times); err != nil {
		return nil, err
	}
	cells, err := readCells(nb, dir.Executed())
	if err != nil {
		return nil, err
	}
	e.cells = slices.DeleteFunc(cells, func(c *bookCell) bool { return !counts(c.cell, c.notes.LeftOut) })
	return e, nil
}

// Parameters returns the values that a run's parameters were given.
func Parameters(dir rundir.Dir) (map[string]string, error) {
	e, err := ReadEarlier(dir)
	if err != nil {
		return nil, err
	}
	return e.times.Parameters, nil
}

// counts reports whether a cell is part of the job.
func counts(cell *nbformat.Cell, leftOut bool) bool {
	return cell.Type == nbformat.Code && !leftOut && strings.TrimSpace(cell.Source) != ""
}

// Check returns an error if the cells before cell number `before` cannot be reused: one was edited
// or failed, or the parameters differ. The order and the text of the code cells count; Markdown may
// change.
func (e *Earlier) Check(nb *nbformat.Notebook, plan Plan, before int) error {
	for i, cell := range first(nb, plan, before) {
		if i >= len(e.cells) || e.cells[i].cell.Source != cell.Source {
			return fmt.Errorf("%s has changed since run %s; start from this cell, or run all cells", name(cell), e.dir.Name())
		}
		if old := e.cells[i]; len(old.notes.Cells) == 0 && len(plan.names(cell.Number)) > 0 {
			return fmt.Errorf("%s did not run in run %s, which ran other cells; name a run of this cell with --from-run, or start from this cell", name(cell), e.dir.Name())
		} else if len(old.notes.Cells) != len(plan.names(cell.Number)) {
			return fmt.Errorf("%s now runs %s, but ran %d in run %s; start from this cell, or run all cells", name(cell), plural.Of(len(plan.names(cell.Number)), "command"), len(old.notes.Cells), e.dir.Name())
		} else if !old.finished() {
			return fmt.Errorf("%s did not succeed in run %s (its status is %s); start from this cell", name(cell), e.dir.Name(), old.times.Status)
		}
	}
	if old, now := e.times.Parameters, plan.Parameters; !maps.Equal(old, now) {
		return fmt.Errorf("run %s had the parameters %s; this submission has %s; give the same ones, or run all cells", e.dir.Name(), options(old), options(now))
	}
	return nil
}

// Names returns the names that the job's cells before cell number `before` have in this run, by
// their names now: a name may come from the cell's number, which changes. Check must have passed.
func (e *Earlier) Names(nb *nbformat.Notebook, plan Plan, before int) map[string]string {
	was := map[string]string{}
	for i, cell := range first(nb, plan, before) {
		for j, name := range plan.names(cell.Number) {
			was[name] = e.cells[i].notes.Cells[j]
		}
	}
	return was
}

// options returns parameters as a command line sets them.
func options(parameters map[string]string) string {
	if len(parameters) == 0 {
		return "those of the notebook"
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		words = append(words, "-p", name+"="+parameters[name])
	}
	return shellescape.QuoteCommand(words)
}

// Prepare is like the function Prepare, for a run that reuses the outputs of this run's cells
// before cell number `before`. Check must have passed.
func (e *Earlier) Prepare(dir rundir.Dir, nb *nbformat.Notebook, plan Plan, before int) error {
	old := map[int]*bookCell{}
	for i, cell := range first(nb, plan, before) {
		old[cell.Number] = e.cells[i]
	}
	return prepare(dir, nb, plan, e.dir.Name(), old)
}

// first returns the cells of the job before cell number `before`.
func first(nb *nbformat.Notebook, plan Plan, before int) (cells []*nbformat.Cell) {
	for _, cell := range nb.Cells {
		if cell.Number < before && counts(cell, slices.Contains(plan.LeftOut, cell.Number)) {
			cells = append(cells, cell)
		}
	}
	return cells
}

// name returns a cell's name for messages.
func name(cell *nbformat.Cell) string {
	if cell.ID == "" || cell.Alias != "" {
		return "cell " + cell.Label()
	}
	return fmt.Sprintf("cell %s (id %s)", cell.Label(), cell.ID)
}
