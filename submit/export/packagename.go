package export

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"gonbatch/internal/gocell"
)

// packageNames finds the names of imported packages without running the go command.
type packageNames struct {
	mod       *modfile.File
	sourceDir string
	modCache  string
	cache     map[string]string
}

// of is the name of the package at an import path, or "" where it cannot be known. A name that the path suggests and that
// the program uses is taken as right; else the package's own source decides.
func (n *packageNames) of(importPath string, used map[string]map[string]bool) string {
	assumed := gocell.AssumedName(importPath)
	if used[assumed] != nil || gocell.IsStandard(importPath) {
		return assumed
	}
	if name, ok := n.cache[importPath]; ok {
		return name
	}
	name := ""
	if dir := n.dir(importPath); dir != "" {
		name = clauseIn(dir)
	}
	n.cache[importPath] = name
	return name
}

// dir is the folder of the package's source, or "" where no module of go.mod has it.
func (n *packageNames) dir(importPath string) string {
	if rest, ok := strings.CutPrefix(importPath, "gonbatch/"); ok {
		return filepath.Join(n.sourceDir, rest)
	}
	in := containingModule(n.mod, importPath)
	rest := strings.TrimPrefix(importPath, in)
	for _, r := range n.mod.Replace {
		if r.Old.Path == in && r.New.Version == "" {
			return filepath.Join(r.New.Path, rest)
		}
	}
	for _, r := range n.mod.Require {
		if r.Mod.Path != in {
			continue
		}
		path, err := module.EscapePath(in)
		if err != nil {
			return ""
		}
		return filepath.Join(n.modCache, path+"@"+r.Mod.Version, rest)
	}
	return ""
}

// clauseIn is the name in the package clause of a folder's first Go file that is no test.
func clauseIn(dir string) string {
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
