package submit

import (
	"cmp"
	"path/filepath"
	"slices"

	"gonbatch/internal/rundir"
)

// Command returns the command that starts a cell's program on each of its ranks, through the run's
// rank script if the job is recorded.
func (s JobSpec) Command(cell rundir.Cell) []string {
	command := append([]string{s.RunDir.CellProgram(cell)}, s.CellArgs(cell)...)
	if s.Record {
		command = append([]string{s.RunDir.RankScript()}, command...)
	}
	return command
}

// Dir returns the directory in which a cell runs; a relative one is below the job's.
func (s JobSpec) Dir(cell rundir.Cell) string {
	if cell.Dir == "" || filepath.IsAbs(cell.Dir) {
		return cmp.Or(cell.Dir, s.WorkDir)
	}
	return filepath.Join(s.WorkDir, cell.Dir)
}

// WithArgs returns the cells with all arguments that they get.
func (s JobSpec) WithArgs(cells []rundir.Cell) []rundir.Cell {
	cells = slices.Clone(cells)
	for i, cell := range cells {
		cells[i].Args = s.CellArgs(cell)
	}
	return cells
}

// CellArgs returns the arguments of a cell's program: the cell's own, the job's, and those of its
// resumption.
func (s JobSpec) CellArgs(cell rundir.Cell) []string {
	if !cell.TakesArgs() {
		return cell.Args
	}
	return slices.Concat(cell.Args, s.Args, s.MoreArgs)
}
