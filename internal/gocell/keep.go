package gocell

import (
	"slices"
	"strings"
)

// KeepPackage is what programs import that keep variables, and keepGoMLX lets it keep GoMLX's.
const (
	KeepPackage = "gonbatch/kernel/keep"
	keepGoMLX   = KeepPackage + "/gomlx"
)

// onGoMLX are the imports with which a program can have values of GoMLX's.
var onGoMLX = []string{"github.com/gomlx/", "gonbatch/trainer", "gonbatch/models", "gonbatch/distributed", "gonbatch/checkpoint"}

// KeepImports are the packages that a program must also import, for their registrations, if it
// keeps variables and has these imports.
func KeepImports(paths []string) []string {
	for _, path := range paths {
		if slices.ContainsFunc(onGoMLX, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			return []string{keepGoMLX}
		}
	}
	return nil
}
