package gocell

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
)

// ErrTwoMains means that a cell has two main functions.
var ErrTwoMains = errors.New("the cell has two main functions; split it into two cells")

// CheckMains returns an error if the cell has a second main, and its line, from 1.
func (f File) CheckMains() (line int, err error) {
	if len(f.Mains) > 1 {
		return f.Mains[1], fmt.Errorf("line %d already begins the cell's main; split the cell into two", f.Mains[0])
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, "", f.Text(), parser.SkipObjectResolution)
	if err != nil {
		return 0, nil // The compiler will report it.
	}
	mains := 0
	for _, d := range tree.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && FuncKey(fn) == "main" {
			if mains++; mains > 1 {
				line, _ = f.Place(set.PositionFor(fn.Pos(), false).Offset)
				return line, ErrTwoMains
			}
		}
	}
	return 0, nil
}
