package export

import (
	"maps"
	"slices"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/submit/export/input"
	"gonbatch/submit/export/nbcell"
	"gonbatch/submit/export/pitfall"
)

// Module is an exported notebook: a Go module, ready to be written and built.
type Module struct {
	// Notebook is the notebook's file name, as in directives and errors.
	Notebook string
	// Files are the contents of the module's files by slash-separated path: go.mod, go.sum,
	// <cell>/main.go, <cell>/main_test.go, and <cell>.sh.
	Files map[string][]byte
	// Cells are the programs and shell commands, in execution order.
	Cells []rundir.Cell
	// Imports are the import paths of all programs, sorted.
	Imports []string
	// ImportSites map import paths to their places in cells; paths that no cell wrote are missing.
	ImportSites map[string]nbcell.Site
	// Sources are the notebook's code cells by their names in //line directives.
	Sources map[string]CellSource
	// Warnings describe what the programs do without, in the notebook's order.
	Warnings []nbcell.Note
	// Notes describe code that works but may not do what was intended.
	Notes []nbcell.Note
	// Parameters are declared by the cells tagged parameters; Flags are the flags that cells
	// define.
	Parameters []input.Parameter
	Flags      []input.Flag
	// SourceDir is gonbatch's own source tree, which go.mod's replace line names.
	SourceDir string
	// Commands are the notebook's commands that change go.mod. They have not run yet:
	// submit/modules runs them.
	Commands []*ModuleCommand
	// Open are the names, by cell, that look like packages but that no import provides.
	Open map[string][]string
}

// CellSource is a code cell's text, for messages that quote it.
type CellSource struct {
	nbcell.Ref
	Source string
	// LeftOut is set if a tag leaves the cell out of the job.
	LeftOut bool
}

// SourceLine returns the text of a line of a code cell; "" if there is no such line.
func (m *Module) SourceLine(site nbcell.Site) string {
	for _, cell := range m.Sources {
		if lines := strings.Split(cell.Source, "\n"); cell.Number == site.Number && site.Line >= 1 && site.Line <= len(lines) {
			return lines[site.Line-1]
		}
	}
	return ""
}

// Programs returns the cells that are compiled.
func (m *Module) Programs() []rundir.Cell {
	return slices.DeleteFunc(slices.Clone(m.Cells), func(s rundir.Cell) bool { return s.Shell })
}

// CellNames returns the cells' names in order.
func (m *Module) CellNames() []string { return cellNames(m.Cells) }

func cellNames(cells []rundir.Cell) []string {
	names := make([]string, len(cells))
	for i, cell := range cells {
		names[i] = cell.Name
	}
	return names
}

// FileNames returns the names of the module's files, sorted.
func (m *Module) FileNames() []string { return slices.Sorted(maps.Keys(m.Files)) }

// Undistributed returns the programs that compute with GoMLX on every rank of a job without a
// package through which ranks work together: each rank does all of the work.
func (m *Module) Undistributed() []rundir.Cell {
	return slices.DeleteFunc(m.Programs(), func(cell rundir.Cell) bool {
		return cell.Once || !pitfall.ComputesAlone(m.Files[cell.Source()])
	})
}

// ArgsProblem describes why a program would not accept its arguments; "" if it would. sure is false
// if the problem is an unknown flag and the program may have flags that its source doesn't show.
// folder is where the program will begin.
func (m *Module) ArgsProblem(cell rundir.Cell, args []string, folder string) (problem string, sure bool) {
	return input.ReadProgram(string(m.Files[cell.Source()]), m.SourceDir).Problem(cell.Name, args, folder)
}
