// Package pitfall finds code in a notebook that a job would run differently from a notebook, or not
// as its author expects: errors that nobody sees, files that all ranks write, calls that wait for a
// browser, programs that compute the same on every rank. It reads source and refuses nothing;
// package export decides what is an error.
//
//	findings := pitfall.NewFindings()
//	notes = append(notes, findings.Add(code)...)
package pitfall

import (
	"go/ast"

	"gonbatch/submit/export/nbcell"
)

// Findings collects what the functions of the cells do.
type Findings struct {
	// onlyError are the functions that return only an error.
	onlyError map[string]bool
	// functions describes each function's use of files.
	functions map[string]fileUse
	// noted are the notes already returned for earlier programs.
	noted map[nbcell.Note]bool
}

// NewFindings returns the findings before the first cell.
func NewFindings() Findings {
	return Findings{onlyError: map[string]bool{}, functions: map[string]fileUse{}, noted: map[nbcell.Note]bool{}}
}

// Add reads a cell, and returns notes on the errors that it ignores.
func (f *Findings) Add(code *nbcell.Code) (notes []nbcell.Note) {
	var functions []*ast.FuncDecl
	for _, d := range code.AST.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			functions = append(functions, fn)
			if fn.Recv == nil {
				f.onlyError[fn.Name.Name] = givesOnlyError(fn)
			}
		}
	}
	for _, fn := range functions {
		notes = append(notes, droppedErrors(code, fn.Body, f.onlyError)...)
		if fn.Recv == nil {
			f.functions[fn.Name.Name] = filesOf(code, fn)
		}
	}
	return notes
}
