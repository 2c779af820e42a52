package gocell

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// SaveOnExit makes os.Exit save the variables that a program keeps: in the text of its Go file,
// os.Exit becomes os_Exit, which has as many characters, so that all places stay as they are. names
// are those by which the file knows package os; of a file without imports, known are all that there
// may be.
func SaveOnExit(text string, known ...string) (changed string, names []string) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, 0)
	if err != nil {
		return text, nil // The compiler says why.
	}
	packages := osNames(file)
	for _, name := range known {
		packages[name] = true
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

// PlainExit is a text of a compiler or a program with os.Exit as cells have it.
func PlainExit(text string) string { return strings.ReplaceAll(text, "os_Exit", "os.Exit") }

// osNames are the names by which a file imports package os.
func osNames(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value) // The parser has done so.
		switch {
		case path != "os":
		case spec.Name != nil:
			names[spec.Name.Name] = true
		default:
			names["os"] = true
		}
	}
	return names
}

// ExitFunc is what SaveOnExit has put in the place of os.Exit, given the name of package os and of
// package keep.
func ExitFunc(name, keep string) string {
	return fmt.Sprintf("func %s_Exit(code int) { %s.Exit(code) }\n", name, keep)
}
