package pitfall

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export/gomod"
)

// frontEndCalls are the functions of GoNB's library that wait for a user or a browser, by import
// path; nil stands for all functions of a package. A job drops the output that the other functions
// send to a browser.
var frontEndCalls = map[string][]string{
	gomod.GonbUI:              {"RequestInput"},
	gomod.GonbUI + "/widgets": nil,
	gomod.GonbUI + "/dom":     {"GetInnerHtml", "Persist"},
	gomod.GonbUI + "/comms":   {"Listen", "ReadValue", "Subscribe"},
}

// WaitingCall finds the first use in a program of a function that waits for a notebook's front end,
// and its position by the program's //line directives; "" if there is none.
func WaitingCall(source string) (call string, at token.Position) {
	if !strings.Contains(source, path.Base(gomod.GonbUI)) {
		return "", at
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, parser.ParseComments)
	if err != nil {
		return "", at // The compiler says more.
	}
	packages := gocell.ImportNames(file)
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || call != "" {
			return call == ""
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok || x.Obj != nil {
			return true
		}
		waiting, known := frontEndCalls[packages[x.Name]]
		if known && (waiting == nil || slices.Contains(waiting, sel.Sel.Name)) {
			call, at = x.Name+"."+sel.Sel.Name, fset.Position(sel.Pos())
		}
		return call == ""
	})
	return call, at
}
