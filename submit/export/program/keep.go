package program

import (
	"slices"
	"strings"

	"gonbatch/internal/gocell"
)

// The names that %keep adds to programs; no cell has them.
const (
	// KeepName is the name of package keep, KeptFunc of the function that returns the kept
	// variables.
	KeepName = "gonbatch__keep"
	KeptFunc = "gonbatch__kept"
)

// saveOnExit makes os.Exit save the variables of a program that keeps any.
func (p Program) saveOnExit(body string) string {
	if !strings.Contains(body, KeptFunc+"().Begin()") {
		return body
	}
	known := []string{"os"}
	for _, imp := range p.Imports {
		if imp.Path == "os" && imp.Name != "" {
			known = append(known, imp.Name)
		}
	}
	text, names := gocell.SaveOnExit(gocell.Header+body, known...)
	body = strings.TrimPrefix(text, gocell.Header)
	for _, name := range names {
		body += "\n" + gocell.ExitFunc(name, KeepName)
	}
	return body
}

// Keeps reports whether a program with these imports keeps variables.
func Keeps(imports []Import) bool {
	return slices.ContainsFunc(imports, func(l Import) bool { return l.Path == gocell.KeepPackage })
}

// keepImports returns the imports that a program needs to keep its variables, if it keeps any.
func keepImports(imports []Import) (lines []Import) {
	if !Keeps(imports) {
		return nil
	}
	var paths []string
	for _, line := range imports {
		paths = append(paths, line.Path)
	}
	for _, path := range gocell.KeepImports(paths) {
		lines = append(lines, Import{name: "_", Path: path})
	}
	return lines
}
