package nbcell

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"

	"gonbatch/internal/gocell"
)

// headerLines is the number of lines in gocell.Header: line n of the cell is line n+headerLines of
// the parsed file.
const headerLines = 1

// Code is the parsed Go code of a cell.
type Code struct {
	Cell *Cell
	// Text is a whole Go file, and AST its tree, without resolved identifiers.
	Text string
	AST  *ast.File
	Fset *token.FileSet
	file *token.File
}

// Parse parses the cell's Go code. Its error is an *Error in the cell.
func (c *Cell) Parse(goFile gocell.File) (*Code, error) {
	code := &Code{Cell: c, Text: goFile.Text(), Fset: token.NewFileSet()}
	var err error
	code.AST, err = parser.ParseFile(code.Fset, "", code.Text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, c.syntaxError(err, goFile.Lines)
	}
	code.file = code.Fset.File(code.AST.Pos())
	return code, nil
}

// syntaxError returns an error for the first syntax error, with its line in the cell.
func (c *Cell) syntaxError(err error, lines []string) error {
	var list scanner.ErrorList
	if !errors.As(err, &list) || len(list) == 0 {
		return c.Errorf(0, "%v", err)
	}
	first := list[0]
	line := min(max(first.Pos.Line-headerLines, 1), len(lines))
	e := c.Errorf(line, "does not parse as Go: %s%s", first.Msg, gocell.Remedy(first.Msg, lines[line-1]))
	e.Col = first.Pos.Column
	return e
}

// Line returns a position's line in the cell.
func (c *Code) Line(pos token.Pos) int { return c.file.PositionFor(pos, false).Line - headerLines }

// Offset returns a position's offset in Text.
func (c *Code) Offset(pos token.Pos) int { return c.file.Offset(pos) }

// Between returns the text between two positions.
func (c *Code) Between(from, to token.Pos) string { return c.Text[c.Offset(from):c.Offset(to)] }

// Note returns a note about a place in the cell.
func (c *Code) Note(pos token.Pos, format string, args ...any) Note {
	return Note{c.Cell.Ref, c.Line(pos), fmt.Sprintf(format, args...)}
}

// Callee returns the name of the called function, such as "os.Exit"; "" if n is not a call of a
// named function.
func Callee(n ast.Node) string {
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

// Method returns the name after the dot of the called function or method; "" if there is no dot.
func Method(call *ast.CallExpr) string {
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
		return sel.Sel.Name
	}
	return ""
}
