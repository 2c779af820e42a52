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

// errAfterMain means that an expression, which becomes a main, follows a main function.
var errAfterMain = errors.New("the cell has a main function above this line; move the line into it, or into another cell")

// CheckMains returns an error if the cell has a second main, and its line, from 1.
func (f File) CheckMains() (line int, err error) {
	if len(f.Mains) > 1 {
		return f.Mains[1], fmt.Errorf("line %d already begins the cell's main; split the cell into two", f.Mains[0])
	}
	text := f.Text()
	if mains := mainsIn(text); len(mains) > 1 {
		line, _ = f.Place(mains[1])
		return line, ErrTwoMains
	}
	if last, ok := LastValue(text); ok && last.Bare && len(mainsIn(text[:last.Start])) > 0 {
		line, _ = f.Place(last.Start)
		return line, errAfterMain
	}
	return 0, nil
}

// mainsIn returns the offsets of the main functions in a Go file; none if it has syntax errors.
func mainsIn(text string) (offsets []int) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil // The compiler will report it.
	}
	for _, d := range tree.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && FuncKey(fn) == "main" {
			offsets = append(offsets, set.PositionFor(fn.Pos(), false).Offset)
		}
	}
	return offsets
}
