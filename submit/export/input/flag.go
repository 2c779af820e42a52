// Package input describes what a user can give to a notebook's job: values for the parameters of
// its tagged cells, and arguments for the flags that its programs define. It reads Go source, and
// runs nothing.
//
//	params := input.Parameters{Values: map[string]string{"epochs": "20"}}
//	err := params.Apply(cell, &goFile) // var epochs = 2 becomes var epochs = 20
//	problem, sure := input.ReadProgram(source, gonbatchSource).Problem("train", []string{"-lr", "x"})
package input

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"gonbatch/submit/export/nbcell"
)

// Flag is a flag that a notebook defines with the flag package.
type Flag struct {
	nbcell.Ref
	// Name is the flag's name, and Type the type of its values; Default and Usage are as in the
	// cell.
	Name, Type, Default, Usage string
}

// flagArguments are the indexes of name, default and usage in the arguments of the flag package's
// functions; -1 if missing. Functions whose name ends in Var have one more argument before these.
var flagArguments = map[string][3]int{
	"Bool": {0, 1, 2}, "Int": {0, 1, 2}, "Int64": {0, 1, 2}, "Uint": {0, 1, 2}, "Uint64": {0, 1, 2}, "Float64": {0, 1, 2},
	"String": {0, 1, 2}, "Duration": {0, 1, 2}, "Text": {0, 1, 2}, "": {0, -1, 1}, "Func": {0, -1, 1}, "BoolFunc": {0, -1, 1},
}

// readFlag reads a call that defines a flag. text returns the source between two positions.
func readFlag(cell nbcell.Ref, call *ast.CallExpr, text func(from, to token.Pos) string) (Flag, bool) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return Flag{}, false
	}
	if pkg, ok := sel.X.(*ast.Ident); !ok || pkg.Name != "flag" {
		return Flag{}, false
	}
	kind, args := sel.Sel.Name, call.Args
	if base, isVar := strings.CutSuffix(kind, "Var"); isVar && len(args) > 0 {
		kind, args = base, args[1:]
	}
	places, ok := flagArguments[kind]
	if !ok || len(args) <= slices.Max(places[:]) {
		return Flag{}, false
	}
	argument := func(i int) string {
		if i < 0 {
			return ""
		}
		return text(args[i].Pos(), args[i].End())
	}
	f := Flag{Ref: cell, Type: strings.ToLower(kind), Default: argument(places[1])}
	f.Name, f.Usage = unquoted(argument(places[0])), unquoted(argument(places[2]))
	return f, true
}

// unquoted returns the text of a string literal, and any other expression unchanged.
func unquoted(source string) string {
	if text, err := strconv.Unquote(source); err == nil {
		return text
	}
	return source
}

// IsDefining reports whether a word is the name of a function of package flag that defines a flag
// and returns its value.
func IsDefining(word string) bool {
	_, known := flagArguments[word]
	return known
}
