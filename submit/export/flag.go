package export

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// Flag is a flag that a notebook defines with the flag package.
type Flag struct {
	CellRef
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
func readFlag(cell *cellInfo, call *ast.CallExpr, text func(from, to token.Pos) string) (Flag, bool) {
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
	f := Flag{CellRef: cell.ref, Type: strings.ToLower(kind), Default: argument(places[1])}
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

// flagsIn finds the flags that a parsed cell defines.
func (p *cellParser) flagsIn(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f, ok := readFlag(p.cell, call, func(from, to token.Pos) string { return p.chunk(from, to).text }); ok {
				p.out.flags = append(p.out.flags, f)
			}
			p.out.addsFlags = p.out.addsFlags || isAddFlags(call)
		}
		return true
	})
}

// noteLateFlags notes flags that a main defines after it has parsed the arguments, which a cell's
// main does first: given such a flag, the program would end with an error.
func (p *cellParser) noteLateFlags(main *ast.FuncDecl) {
	parsed := false
	ast.Inspect(main, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		_, defines := readFlag(p.cell, call, func(token.Pos, token.Pos) string { return "" })
		if parsed && (defines || calledSelector(call) == "AddFlags") {
			p.out.findings = append(p.out.findings, p.note(call.Pos(), "%s defines flags after the main has parsed them, so it does not know them: call it in a function such as func init_flags(), in another cell", calledName(call)))
		}
		parsed = parsed || calledName(call) == "flag.Parse"
		return true
	})
}

// addFlags appends flags. A flag replaces an earlier one of the same name.
func addFlags(list, more []Flag) []Flag {
	for _, f := range more {
		list = slices.DeleteFunc(list, func(old Flag) bool { return old.Name == f.Name })
		list = append(list, f)
	}
	return list
}
