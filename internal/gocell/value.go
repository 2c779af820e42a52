package gocell

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// Value is the expression at the end of a cell, whose value is the cell's. Two kinds of cells have
// one: a cell whose main ends in an expression, and a cell that has only declarations before a bare
// expression, which is not valid Go.
type Value struct {
	// Start and End are the offsets of its text.
	Start, End int
	// Bare is set if the expression is outside any function.
	Bare bool
	// Call is set if it is a call, which may have no value. Callee is the text of the called
	// function.
	Call   bool
	Callee string
}

// LastValue finds the expression at the end of a Go file. There is none if the last statement is
// something else, if its value is never of interest (fmt.Println returns the number of bytes), if a
// semicolon follows it, or if the file has syntax errors.
func LastValue(source string) (Value, bool) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return findBare(source)
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Name.Name != "main" || f.Recv != nil || f.Body == nil || len(f.Body.List) == 0 {
			continue
		}
		last, ok := f.Body.List[len(f.Body.List)-1].(*ast.ExprStmt)
		if !ok {
			continue
		}
		start, end := files.Position(last.X.Pos()).Offset, files.Position(last.X.End()).Offset
		return describe(source, last.X, start, end)
	}
	return Value{}, false
}

// findBare finds an expression that follows the declarations.
func findBare(source string) (Value, bool) {
	start := BareStart(source)
	if start < 0 {
		return Value{}, false
	}
	files := token.NewFileSet()
	text := source[start:]
	x, err := parser.ParseExprFrom(files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return Value{}, false
	}
	end := start + files.Position(x.End()).Offset
	if _, err := parser.ParseFile(token.NewFileSet(), "", source[:start], parser.SkipObjectResolution); err != nil {
		return Value{}, false
	}
	found, ok := describe(source, x, start+files.Position(x.Pos()).Offset, end)
	found.Bare = true
	return found, ok
}

// BareStart returns the offset of the first statement outside brackets that is not a declaration;
// or -1.
func BareStart(source string) int {
	depth, begins := 0, true
	for t := range Tokens(source, 0) {
		switch t.Kind {
		case token.RPAREN, token.RBRACE, token.RBRACK:
			depth = max(depth-1, 0)
		case token.PACKAGE, token.IMPORT, token.CONST, token.VAR, token.TYPE, token.FUNC, token.SEMICOLON:
		default:
			if begins && depth == 0 {
				return t.Offset
			}
			if t.Kind == token.LPAREN || t.Kind == token.LBRACE || t.Kind == token.LBRACK {
				depth++
			}
		}
		begins = t.Kind == token.SEMICOLON && depth == 0
	}
	return -1
}

// describe describes the expression, unless its value is of no interest.
func describe(source string, x ast.Expr, start, end int) (Value, bool) {
	if rest, _, _ := strings.Cut(source[end:], "\n"); strings.HasPrefix(strings.TrimSpace(rest), ";") {
		return Value{}, false
	}
	found := Value{Start: start, End: end}
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok {
		return found, true
	}
	if literal, ok := ast.Unparen(call.Fun).(*ast.FuncLit); ok {
		found.Call, found.Callee = true, "func"
		return found, literal.Type.Results.NumFields() > 0
	}
	offset := start - int(x.Pos())
	found.Call, found.Callee = true, source[offset+int(call.Fun.Pos()):offset+int(call.Fun.End())]
	return found, !noValue(found.Callee)
}

// builtinStatements are the built-in functions whose calls are statements.
var builtinStatements = []string{"clear", "close", "copy", "delete", "panic", "print", "println", "recover"}

// noValue reports whether a function has no value, or one that matters only to error handling.
func noValue(callee string) bool {
	return slices.Contains(builtinStatements, callee) ||
		slices.ContainsFunc([]string{"fmt.Print", "fmt.Fprint", "log.Print", "log.Fatal", "log.Panic", "os.Exit"},
			func(prefix string) bool { return strings.HasPrefix(callee, prefix) })
}

// IsStatement reports whether a call can be a statement: it is neither a conversion to a
// predeclared type nor a built-in function that only has a value.
func IsStatement(callee string) bool {
	switch types.Universe.Lookup(callee).(type) {
	case *types.TypeName:
		return false
	case *types.Builtin:
		return slices.Contains(builtinStatements, callee)
	}
	return true
}
