package program

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export/decl"
	"gonbatch/submit/export/gomod"
)

// Import is an import of a program.
type Import struct {
	name string
	// Path is its import path.
	Path string
	doc  string
	// Site is the cell's import, or nil for one that no cell wrote.
	Site *decl.Import
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
func chooseImports(remembered []*decl.Import, body string, names *gomod.Names, found map[string]string) (chosen []Import, missing []string, err error) {
	used, err := selectors(body)
	if err != nil {
		return nil, nil, err
	}
	open := maps.Clone(used) // names that no import provides yet
	var unsure []*decl.Import
	for _, imp := range remembered {
		name := imp.Name
		if name == "" {
			name = names.Of(imp.Path, used)
		}
		switch {
		case name == "_" || name == "." || imp.Path == "C":
			delete(open, imp.Path)
		case name == "":
			unsure = append(unsure, imp)
			continue
		case used[name] == nil:
			continue
		}
		delete(open, name)
		chosen = append(chosen, fromCell(imp))
	}
	for _, name := range slices.Sorted(maps.Keys(open)) {
		imp := Import{Path: gocell.StandardPackage(name, open[name])}
		if imp.Path == "" {
			imp.Path = found[name]
			if gocell.AssumedName(imp.Path) != name {
				imp.name = name
			}
		}
		if imp.Path != "" {
			delete(open, name)
			chosen = append(chosen, imp)
		}
	}
	missing = slices.Sorted(maps.Keys(open))
	for _, name := range missing { // A package that lacks a symbol: the compiler says which.
		if importPath := gocell.StandardPackage(name, nil); importPath != "" {
			delete(open, name)
			chosen = append(chosen, Import{Path: importPath})
		}
	}
	if len(open) > 0 { // One of the names may come from an import whose name is unknown.
		for _, imp := range unsure {
			chosen = append(chosen, fromCell(imp))
		}
	}
	slices.SortStableFunc(chosen, func(a, b Import) int { return strings.Compare(a.Path, b.Path) })
	return chosen, missing, nil
}

// fromCell returns a cell's import for a program.
func fromCell(imp *decl.Import) Import {
	return Import{name: imp.Name, Path: imp.Path, doc: imp.Doc, Site: imp}
}

// renderImports returns the import declarations: the standard library, all others, and cgo with its
// preamble.
func renderImports(imports []Import) string {
	var std, other, cgo strings.Builder
	for _, imp := range imports {
		switch {
		case imp.Path == "C":
			cgo.WriteString("\n" + imp.doc + "import \"C\"\n")
		case gocell.IsStandard(imp.Path):
			std.WriteString(imp.String())
		default:
			other.WriteString(imp.String())
		}
	}
	if std.Len()+other.Len() == 0 {
		return cgo.String()
	}
	gap := ""
	if std.Len() > 0 && other.Len() > 0 {
		gap = "\n"
	}
	return "\nimport (\n" + std.String() + gap + other.String() + ")\n" + cgo.String()
}

// String returns the import's line in an import block.
func (l Import) String() string {
	if l.name == "" {
		return fmt.Sprintf("\t%q\n", l.Path)
	}
	return fmt.Sprintf("\t%s %q\n", l.name, l.Path)
}

// Logs reports whether a program uses package log.
func Logs(imports []Import) bool {
	return slices.ContainsFunc(imports, func(l Import) bool { return l.Path == "log" && l.name != "_" && l.name != "." })
}
