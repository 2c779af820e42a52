package export

import (
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/rundir"
)

// gomlxPrefix begins the import paths of GoMLX.
const gomlxPrefix = "github.com/gomlx/"

// trainingPackages are the packages through which ranks work together.
var trainingPackages = []string{"gonbatch/distributed", "gonbatch/trainer"}

// Undistributed returns the programs that compute with GoMLX on every rank of a job without a
// package through which ranks work together: each rank does all of the work.
func (m *Module) Undistributed() []rundir.Cell {
	return slices.DeleteFunc(m.Programs(), func(cell rundir.Cell) bool {
		return cell.Once || !computesAlone(programImports(m.Files[cell.Source()]))
	})
}

// IsDistributed reports whether a cell is a program that runs on every rank, and imports a package
// through which ranks work together.
func (m *Module) IsDistributed(cell rundir.Cell) bool {
	return !cell.Shell && !cell.Test && !cell.Once && worksTogether(programImports(m.Files[cell.Source()]))
}

// computesAlone reports whether a program with these imports uses GoMLX but no trainingPackages.
func computesAlone(paths []string) bool {
	return !worksTogether(paths) && slices.ContainsFunc(paths, func(path string) bool { return strings.HasPrefix(path, gomlxPrefix) })
}

// worksTogether reports whether a program with these imports uses trainingPackages.
func worksTogether(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return slices.Contains(trainingPackages, path) })
}

// programImports returns the import paths of a Go file.
func programImports(source []byte) (paths []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ImportsOnly)
	if err != nil {
		return nil // The compiler says more.
	}
	for _, spec := range file.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}
