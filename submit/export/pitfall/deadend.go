package pitfall

import (
	"go/ast"
	"go/token"
	"strings"

	"gonbatch/submit/export/nbcell"
)

// DeadEnd describes where and how a main that can never succeed ends.
type DeadEnd struct {
	// Line is the line in the cell.
	Line int
	// How says why nothing runs after it, as in "this loop never ends".
	How string
}

// findDeadEnd looks at a main's last statement. It returns nil if the main may also end elsewhere.
func findDeadEnd(code *nbcell.Code, body *ast.BlockStmt) *DeadEnd {
	if len(body.List) == 0 {
		return nil
	}
	last := body.List[len(body.List)-1]
	for _, statement := range body.List[:len(body.List)-1] {
		if mayLeave(statement, false) {
			return nil
		}
	}
	if how := endlessly(last); how != "" {
		return &DeadEnd{code.Line(last.Pos()), how}
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
		found = found || nbcell.Callee(n) == "os.Exit"
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
		name := nbcell.Callee(s.X)
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
