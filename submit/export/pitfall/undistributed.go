package pitfall

import (
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"gonbatch/submit/export/gomod"
)

// trainingPackages are the packages through which ranks work together.
var trainingPackages = []string{"gonbatch/distributed", "gonbatch/trainer"}

// ComputesAlone reports whether a program uses GoMLX, but no package through which ranks work
// together: each rank does all of the work.
func ComputesAlone(source []byte) bool {
	paths := importsOf(source)
	trains := slices.ContainsFunc(paths, func(path string) bool { return slices.Contains(trainingPackages, path) })
	return !trains && slices.ContainsFunc(paths, func(path string) bool { return strings.HasPrefix(path, gomod.GoMLX) })
}

// importsOf returns the import paths of a Go file.
func importsOf(source []byte) (paths []string) {
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
