package export

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export/gomod"
)

// importLine is an import of an exported program.
type importLine struct {
	name, path string
	doc        string
	site       *importDecl // nil for an import that no cell wrote
}

// selectors returns the packages that a program's body uses, each with its used symbols: every
// X.Sel where the file declares no X.
func selectors(body string) (map[string]map[string]bool, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", gocell.Header+body, 0)
	if err != nil {
		return nil, err
	}
	used := map[string]map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Obj == nil {
			if used[x.Name] == nil {
				used[x.Name] = map[string]bool{}
			}
			used[x.Name][sel.Sel.Name] = true
		}
		return true
	})
	return used, nil
}

// chooseImports returns the imports of a program: the cells' imports that it uses, missing packages
// of the standard library, and the packages of other modules in found. missing are the names that
// no import provides. GoNB runs goimports for all of this; submit/modules runs it only for the
// missing names.
func chooseImports(remembered []*importDecl, body string, names *gomod.Names, found map[string]string) (chosen []importLine, missing []string, err error) {
	used, err := selectors(body)
	if err != nil {
		return nil, nil, err
	}
	open := maps.Clone(used) // names that no import provides yet
	var unsure []*importDecl
	for _, imp := range remembered {
		name := imp.name
		if name == "" {
			name = names.Of(imp.path, used)
		}
		switch {
		case name == "_" || name == "." || imp.path == "C":
			delete(open, imp.path)
		case name == "":
			unsure = append(unsure, imp)
			continue
		case used[name] == nil:
			continue
		}
		delete(open, name)
		chosen = append(chosen, imp.importLine())
	}
	chosen = append(chosen, missingStdlib(open)...)
	for _, name := range slices.Sorted(maps.Keys(open)) {
		if importPath := found[name]; importPath != "" {
			delete(open, name)
			chosen = append(chosen, foundImport(name, importPath))
		}
	}
	missing = slices.Sorted(maps.Keys(open))
	for _, name := range missing { // A package that lacks a symbol: the compiler says which.
		if importPath := gocell.StandardPackage(name, nil); importPath != "" {
			delete(open, name)
			chosen = append(chosen, importLine{path: importPath})
		}
	}
	if len(open) > 0 { // One of the names may come from an import whose name is unknown.
		for _, imp := range unsure {
			chosen = append(chosen, imp.importLine())
		}
	}
	slices.SortStableFunc(chosen, func(a, b importLine) int { return strings.Compare(a.path, b.path) })
	return chosen, missing, nil
}

// foundImport returns an import that no cell has.
func foundImport(name, importPath string) importLine {
	line := importLine{path: importPath}
	if gocell.AssumedName(importPath) != name {
		line.name = name
	}
	return line
}

// importLine returns the import for a program.
func (d *importDecl) importLine() importLine {
	line := importLine{name: d.name, path: d.path, site: d}
	for _, c := range d.doc {
		line.doc += c.text
	}
	return line
}

// missingStdlib returns imports for the open names that are packages of the standard library, and
// removes those names.
func missingStdlib(open map[string]map[string]bool) []importLine {
	var lines []importLine
	for _, name := range slices.Sorted(maps.Keys(open)) {
		importPath := gocell.StandardPackage(name, open[name])
		if importPath == "" {
			continue
		}
		delete(open, name)
		lines = append(lines, importLine{path: importPath})
	}
	return lines
}
