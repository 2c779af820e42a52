// Package lastexpr finds the expression that a notebook's cell ends in: its value is the cell's result. It reads Go only, and neither
// type-checks nor runs it; lines that are no Go (magics, shell commands) must be emptied before.
//
//	source := "package main\nfunc main() {\nx := 6\nx*7 // the answer\n}\n"
//	last, ok := lastexpr.Find(source)
//	source[last.Start:last.End]   // "x*7"
//
// Two cells end in an expression: one whose main does, and one that has declarations only and then the bare expression, which is not
// Go as it stands.
package lastexpr

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"strings"
)

// Expr is the expression that a source ends in.
type Expr struct {
	// Start and End are the offsets of its text.
	Start, End int
	// Bare is set if the expression stands outside of any function.
	Bare bool
	// Call is set if it is a call, which may have no value, and Callee is the text of what it calls.
	Call   bool
	Callee string
}

// Find finds the expression. There is none where the last statement is something else, where its value was never meant to be seen
// (fmt.Println gives the number of bytes), where a semicolon stands behind it, or where the source has syntax errors.
func Find(source string) (Expr, bool) {
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
	return Expr{}, false
}

// findBare finds an expression that follows the declarations.
func findBare(source string) (Expr, bool) {
	start := BareStart(source)
	if start < 0 {
		return Expr{}, false
	}
	files := token.NewFileSet()
	text := source[start:]
	x, err := parser.ParseExprFrom(files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return Expr{}, false
	}
	end := start + files.Position(x.End()).Offset
	if _, err := parser.ParseFile(token.NewFileSet(), "", source[:start], parser.SkipObjectResolution); err != nil {
		return Expr{}, false
	}
	found, ok := describe(source, x, start+files.Position(x.Pos()).Offset, end)
	found.Bare = true
	return found, ok
}

// BareStart is the offset at which the first statement begins, outside of brackets, that is no declaration; or -1.
func BareStart(source string) int {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, []byte(source), nil, 0)
	depth, begins := 0, true
	for {
		pos, tok, _ := s.Scan()
		switch tok {
		case token.EOF:
			return -1
		case token.LPAREN, token.LBRACE, token.LBRACK:
			if begins && depth == 0 {
				return file.Offset(pos)
			}
			depth++
		case token.RPAREN, token.RBRACE, token.RBRACK:
			depth--
		case token.PACKAGE, token.IMPORT, token.CONST, token.VAR, token.TYPE, token.FUNC, token.SEMICOLON:
		default:
			if begins && depth == 0 {
				return file.Offset(pos)
			}
		}
		begins = tok == token.SEMICOLON && depth == 0
	}
}

// describe tells what the expression is, unless nobody wants to see it.
func describe(source string, x ast.Expr, start, end int) (Expr, bool) {
	if rest, _, _ := strings.Cut(source[end:], "\n"); strings.HasPrefix(strings.TrimSpace(rest), ";") {
		return Expr{}, false
	}
	found := Expr{Start: start, End: end}
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

// noValue reports whether a function has no value, or one that only its caller's error handling wants.
func noValue(callee string) bool {
	switch callee {
	case "panic", "print", "println", "close", "delete", "clear", "copy":
		return true
	}
	for _, prefix := range []string{"fmt.Print", "fmt.Fprint", "log.Print", "log.Fatal", "log.Panic", "os.Exit"} {
		if strings.HasPrefix(callee, prefix) {
			return true
		}
	}
	return false
}
