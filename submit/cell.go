package submit

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gonbatch/internal/rundir"
)

// Program returns the command that is a cell: its program or script, and its arguments.
func (s JobSpec) Program(cell rundir.Cell) []string {
	return append([]string{s.RunDir.CellProgram(cell)}, s.CellArgs(cell)...)
}

// RankName is the name of the command that runs a rank, and RankStep its option in a step of SLURM,
// whose output is the rank's log, and whose signals reach the program too.
const (
	RankName = "rank"
	RankStep = "--step"
)

// RankCommand returns the command that runs one rank of a cell. step is set in a step of SLURM.
func (s JobSpec) RankCommand(cell rundir.Cell, step bool) []string {
	command := []string{s.RunDir.Submit(), RankName}
	if step {
		command = append(command, RankStep)
	}
	return append(command, s.RunDir.Path(), cell.Name)
}

// HasSetup reports whether the job runs commands of the user before its cells.
func (s JobSpec) HasSetup() bool { return len(s.Setup)+len(s.Modules) > 0 }

// Dir returns the directory in which a cell runs; a relative one is below the job's.
func (s JobSpec) Dir(cell rundir.Cell) string {
	if cell.Dir == "" || filepath.IsAbs(cell.Dir) {
		return cmp.Or(cell.Dir, s.WorkDir)
	}
	return filepath.Join(s.WorkDir, cell.Dir)
}

// CheckDir refuses a cell whose directory is missing: the notebook's own, or one to which the
// notebook changes.
func (s JobSpec) CheckDir(cell rundir.Cell) error {
	dir := s.Dir(cell)
	if dir == "" {
		return nil
	}
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if cell.Dir == "" || filepath.Clean(dir) == filepath.Clean(s.WorkDir) {
		return fmt.Errorf("the notebook's folder %s is gone, and the programs run there; put it back and resume the run with: %s", dir, ResumeCommand(s.RunDir))
	}
	return fmt.Errorf("its folder %s does not exist; correct the notebook's %%cd, or create the folder with a line !mkdir -p above it", dir)
}

// TasksOf returns the number of a cell's ranks.
func (s JobSpec) TasksOf(cell rundir.Cell) int {
	if cell.Once {
		return 1
	}
	return s.Tasks()
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
