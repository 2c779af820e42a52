package gomod

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"gonbatch/internal/gocell"
	"gonbatch/internal/gomodule"
)

// Names finds the names of imported packages without running the go command.
type Names struct {
	// Mod is the program's go.mod, SourceDir gonbatch's own source tree, and ModCache the folder of
	// downloaded modules.
	Mod                 *modfile.File
	SourceDir, ModCache string

	found map[string]string
}

// Of returns the name of the package at an import path; "" if it is unknown. If the program uses
// the name that the path suggests, Of returns that; otherwise it looks in the package's source.
func (n *Names) Of(importPath string, used map[string]map[string]bool) string {
	assumed := gocell.AssumedName(importPath)
	if used[assumed] != nil || gocell.IsStandard(importPath) {
		return assumed
	}
	if name, ok := n.found[importPath]; ok {
		return name
	}
	name := ""
	if dir := n.dir(importPath); dir != "" {
		name = PackageIn(dir)
	}
	if n.found == nil {
		n.found = map[string]string{}
	}
	n.found[importPath] = name
	return name
}

// dir returns the folder of the package's source; "" if it is in no module of go.mod.
func (n *Names) dir(importPath string) string {
	if rest, ok := strings.CutPrefix(importPath, "gonbatch/"); ok {
		return filepath.Join(n.SourceDir, rest)
	}
	in := gomodule.Containing(n.Mod, importPath)
	if in.Path == "" {
		return ""
	}
	rest := strings.TrimPrefix(importPath, in.Path)
	for _, r := range n.Mod.Replace {
		if r.Old == in || r.Old.Path == in.Path && r.Old.Version == "" {
			in = r.New
			break
		}
	}
	if in.Version == "" {
		return filepath.Join(in.Path, rest)
	}
	path, err := module.EscapePath(in.Path)
	if err != nil {
		return ""
	}
	return filepath.Join(n.ModCache, path+"@"+in.Version, rest)
}

// Has reports whether the source of an imported package is on this machine: in the standard
// library, or in a module of go.mod.
func (n *Names) Has(importPath string) bool {
	if gocell.IsStandard(importPath) {
		return true
	}
	dir := n.dir(importPath)
	return dir != "" && PackageIn(dir) != ""
}

// PackageIn returns the package name in a folder's Go files, apart from tests and packages main and
// documentation; "" if there is none.
func PackageIn(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.PackageClauseOnly)
		if err == nil && file.Name.Name != "main" && file.Name.Name != "documentation" {
			return file.Name.Name
		}
	}
	return ""
}
