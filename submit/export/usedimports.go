package export

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// importLine is an import of an exported program.
type importLine struct {
	name, path string
	doc        string
	site       *importDecl // nil for one that no cell wrote
}

// selectors gives the packages that a program's body uses, each with what it takes from them: X.Sel where X is declared
// nowhere in the file.
func selectors(body string) (map[string]map[string]bool, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", header+body, 0)
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

// chooseImports gives the imports of a program: of those that the cells have the ones that are used, and those of the
// standard library that are missing, as goimports adds them for GoNB.
func chooseImports(remembered []*importDecl, body string, names *packageNames) ([]importLine, error) {
	used, err := selectors(body)
	if err != nil {
		return nil, err
	}
	open := maps.Clone(used) // names that no import gives yet
	var chosen []importLine
	var unsure []*importDecl
	for _, imp := range remembered {
		name := imp.name
		if name == "" {
			name = names.of(imp.path, used)
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
	if len(open) > 0 { // One of the names may come from an import whose name cannot be known.
		for _, imp := range unsure {
			chosen = append(chosen, imp.importLine())
		}
	}
	slices.SortStableFunc(chosen, func(a, b importLine) int { return strings.Compare(a.path, b.path) })
	return chosen, nil
}

// importLine is the import as a program has it.
func (d *importDecl) importLine() importLine {
	line := importLine{name: d.name, path: d.path, site: d}
	for _, c := range d.doc {
		line.doc += c.text
	}
	return line
}

// missingStdlib gives imports for the open names that are packages of the standard library, and closes them.
func missingStdlib(open map[string]map[string]bool) []importLine {
	var lines []importLine
	for _, name := range slices.Sorted(maps.Keys(open)) {
		paths := stdlib()[name]
		if len(paths) == 0 {
			continue
		}
		importPath := paths[0]
		if len(paths) > 1 {
			importPath = ambiguousStdlib(name, open[name])
		}
		delete(open, name)
		lines = append(lines, importLine{path: importPath})
	}
	return lines
}

// decisive are the symbols that only one of several packages of the standard library with the same name has.
var decisive = map[string]map[string]string{
	"pprof": {
		"Handler": "net/http/pprof", "Index": "net/http/pprof", "Cmdline": "net/http/pprof", "Symbol": "net/http/pprof",
		"Trace": "net/http/pprof",
	},
	"rand": {
		"Reader": "crypto/rand", "Prime": "crypto/rand", "Text": "crypto/rand",
		"IntN": "math/rand/v2", "Int32": "math/rand/v2", "Int32N": "math/rand/v2", "Int64": "math/rand/v2", "Int64N": "math/rand/v2",
		"N": "math/rand/v2", "UintN": "math/rand/v2", "Uint32N": "math/rand/v2", "Uint64N": "math/rand/v2",
		"PCG": "math/rand/v2", "NewPCG": "math/rand/v2", "ChaCha8": "math/rand/v2", "NewChaCha8": "math/rand/v2",
	},
	"scanner": {"ErrorHandler": "go/scanner", "ErrorList": "go/scanner", "PrintError": "go/scanner", "Mode": "go/scanner"},
	"template": {
		"CSS": "html/template", "HTML": "html/template", "HTMLAttr": "html/template", "JS": "html/template",
		"JSStr": "html/template", "Srcset": "html/template", "URL": "html/template",
	},
}

// usual is the package that is meant where no symbol decides.
var usual = map[string]string{"pprof": "runtime/pprof", "rand": "math/rand", "scanner": "text/scanner", "template": "text/template"}

// ambiguousStdlib chooses among packages with the same name by the symbols that are used. (goimports, which GoNB runs,
// chooses at random where several have them all.)
func ambiguousStdlib(name string, symbols map[string]bool) string {
	for _, symbol := range slices.Sorted(maps.Keys(symbols)) {
		if importPath := decisive[name][symbol]; importPath != "" {
			return importPath
		}
	}
	return usual[name]
}
