package export

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// frontEndCalls are the functions of GoNB's library that wait for a user or a browser, by import
// path; nil stands for all functions of a package. A job drops the output that the other functions
// send to a browser.
var frontEndCalls = map[string][]string{
	gonbui:              {"RequestInput"},
	gonbui + "/widgets": nil,
	gonbui + "/dom":     {"GetInnerHtml", "Persist"},
	gonbui + "/comms":   {"Listen", "ReadValue", "Subscribe"},
}

// gonbui is GoNB's library for programs.
const gonbui = "github.com/janpfeifer/gonb/gonbui"

// checkFrontEnd refuses programs that would wait forever for an answer from a notebook's front end.
func (e *exporter) checkFrontEnd() error {
	for _, program := range e.module.Programs() {
		source := string(e.module.Files[program.Source()])
		if !strings.Contains(source, path.Base(gonbui)) {
			continue
		}
		if call, at := waitingCall(source); call != "" {
			cell := e.cells[program.Number-1]
			if i := slices.IndexFunc(e.cells, func(c *cellInfo) bool { return c.file == at.Filename }); i >= 0 {
				cell = e.cells[i]
			}
			return cell.errorf(at.Line, "%s waits for the notebook's front end, and a job has none; tag the cells that use it notebook-only", call)
		}
	}
	return nil
}

// waitingCall finds the first use of a function in frontEndCalls, and its position by the file's
// //line directives; "" if there is none.
func waitingCall(source string) (call string, at token.Position) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, parser.ParseComments)
	if err != nil {
		return "", at // The compiler says more.
	}
	packages := importNames(file)
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

// importNames returns a file's import paths by package name, taking the last element of a path as
// the name if the import has none.
func importNames(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range file.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(importPath)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = importPath
	}
	return names
}
