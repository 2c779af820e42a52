package export

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// exits are the functions that end the whole program.
var exits = map[string]bool{"os.Exit": true, "log.Fatal": true, "log.Fatalf": true, "log.Fatalln": true, "syscall.Exit": true}

// calledName returns the name of the called function, such as "os.Exit"; "" if n is not a call of a
// named function.
func calledName(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if pkg, ok := f.X.(*ast.Ident); ok {
			return pkg.Name + "." + f.Sel.Name
		}
	}
	return ""
}

// noteExits notes the calls that end the whole program from a function other than main.
func (p *cellParser) noteExits(d *ast.FuncDecl) {
	ast.Inspect(d, func(n ast.Node) bool {
		if name := calledName(n); exits[name] {
			p.out.notes = append(p.out.notes, Note{p.cell.ref, p.line(n.Pos()),
				fmt.Sprintf("%s in %s ends the program: deferred calls, such as world.Close, do not run", name, d.Name.Name)})
		}
		return true
	})
}

// deadEnd describes where and how a main that can never succeed ends.
type deadEnd struct {
	line int
	how  string
}

// findDeadEnd looks at a main's last statement. It returns nil if the main may also end elsewhere.
func (p *cellParser) findDeadEnd(body *ast.BlockStmt) *deadEnd {
	if body == nil || len(body.List) == 0 {
		return nil
	}
	last := body.List[len(body.List)-1]
	for _, statement := range body.List[:len(body.List)-1] {
		if mayLeave(statement, false) {
			return nil
		}
	}
	if how := endlessly(last); how != "" {
		return &deadEnd{p.line(last.Pos()), how}
	}
	return nil
}

// mayLeave reports whether a statement may leave its function or, if loop is set, the enclosing
// loop.
func mayLeave(n ast.Node, loop bool) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			found = true
		case *ast.BranchStmt:
			found = found || n.Tok == token.GOTO || loop && n.Tok == token.BREAK
		}
		found = found || calledName(n) == "os.Exit"
		return !found
	})
	return found
}

// endlessly describes why execution never gets past a statement; "" if it may.
func endlessly(statement ast.Stmt) string {
	switch s := statement.(type) {
	case *ast.SelectStmt:
		if len(s.Body.List) == 0 {
			return "select {} waits forever"
		}
	case *ast.ForStmt:
		if s.Cond == nil && !mayLeave(s.Body, true) {
			return "this loop never ends"
		}
	case *ast.ExprStmt:
		name := calledName(s.X)
		switch {
		case name == "panic" || strings.HasPrefix(name, "log.Fatal"):
			return name + " ends the program with an error"
		case name == "os.Exit" && !exitsWithZero(s.X.(*ast.CallExpr)):
			return name + " ends the program with an error"
		}
	}
	return ""
}

// exitsWithZero reports whether os.Exit's argument may be 0: it is 0 or not a literal.
func exitsWithZero(call *ast.CallExpr) bool {
	if len(call.Args) != 1 {
		return true
	}
	code, ok := call.Args[0].(*ast.BasicLit)
	return !ok || code.Value == "0"
}

// noteDeadEnds notes the mains after which no other cell can run.
func (e *exporter) noteDeadEnds() {
	for i, made := range e.module.Cells {
		end := e.deadEnds[made.Name]
		if end == nil || i == len(e.module.Cells)-1 {
			continue
		}
		message := fmt.Sprintf("%s, so the cells below cannot run: %s", end.how, strings.Join(e.module.CellNames()[i+1:], ", "))
		e.session.notes = append(e.session.notes, Note{e.cells[made.Number-1].ref, end.line, message})
	}
}
