package gocell

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// SaveOnExit makes os.Exit save the variables that a program keeps: in the text of its Go file, it
// replaces os.Exit with os_Exit, which has the same length, so that all positions stay the same.
// names are the names under which the file imports package os. known are all names that os may have
// if the file has no imports.
func SaveOnExit(text string, known ...string) (changed string, names []string) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, 0)
	if err != nil {
		return text, nil // The compiler will report the error.
	}
	packages := map[string]bool{}
	for _, name := range known {
		packages[name] = true
	}
	for name, path := range ImportNames(file) {
		packages[name] = packages[name] || path == "os"
	}
	out, found := []byte(text), map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok || x.Obj != nil || !packages[x.Name] || sel.Sel.Name != "Exit" || sel.Sel.Pos() != x.End()+1 {
			return true
		}
		out[set.Position(x.End()).Offset] = '_'
		if !found[x.Name] {
			found[x.Name], names = true, append(names, x.Name)
		}
		return true
	})
	return string(out), names
}

// PlainExit restores os.Exit in the output of a compiler or a program.
func PlainExit(text string) string { return strings.ReplaceAll(text, "os_Exit", "os.Exit") }

// ExitFunc returns the function with which SaveOnExit replaces os.Exit, given the names of
// package os and of package keep.
func ExitFunc(name, keep string) string {
	return fmt.Sprintf("func %s_Exit(code int) { %s.Exit(code) }\n", name, keep)
}
