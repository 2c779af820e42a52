package gocell

import (
	"slices"
	"strings"
)

// KeepPackage is the package that programs import to keep variables.
const KeepPackage = "gonbatch/kernel/keep"

// keepers are the packages that let KeepPackage keep the values of a library, and the imports with
// which a program can have such values.
var keepers = []struct {
	path string
	with []string
}{
	{KeepPackage + "/gomlx", []string{"github.com/gomlx/", "gonbatch/trainer", "gonbatch/models", "gonbatch/distributed", "gonbatch/checkpoint"}},
	{KeepPackage + "/gota", []string{"github.com/go-gota/gota/"}},
}

// KeepImports returns the packages that a program with these imports must also import, for their
// registrations, if it keeps variables.
func KeepImports(paths []string) (needed []string) {
	for _, k := range keepers {
		if slices.ContainsFunc(paths, func(path string) bool {
			return slices.ContainsFunc(k.with, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
		}) {
			needed = append(needed, k.path)
		}
	}
	return needed
}
