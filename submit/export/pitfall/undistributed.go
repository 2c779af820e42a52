package pitfall

import (
	"slices"
	"strings"

	"gonbatch/internal/gomodule"
	"gonbatch/submit/export/gomod"
)

// trainingPackages are the packages through which ranks work together.
var trainingPackages = []string{"gonbatch/distributed", "gonbatch/trainer"}

// ComputesAlone reports whether a program uses GoMLX, but no package through which ranks work
// together: each rank does all of the work.
func ComputesAlone(source []byte) bool {
	paths := gomodule.ImportsOf(source)
	trains := slices.ContainsFunc(paths, func(path string) bool { return slices.Contains(trainingPackages, path) })
	return !trains && slices.ContainsFunc(paths, func(path string) bool { return strings.HasPrefix(path, gomod.GoMLX) })
}
