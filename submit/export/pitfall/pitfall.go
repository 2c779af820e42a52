// Package pitfall finds code in a notebook that a job would run differently from a notebook, or not
// as its author expects: files that all ranks write, calls that wait for a browser, programs that
// compute the same on every rank. It reads source and refuses nothing; package export decides what
// is an error.
//
//	findings := pitfall.NewFindings()
//	findings.Add(code) // of each cell
//	notes = append(notes, findings.OfProgram()...)
package pitfall

import (
	"go/ast"

	"gonbatch/submit/export/nbcell"
)

// Findings collects what the functions of the cells do.
type Findings struct {
	// functions describes each function's use of files.
	functions map[string]fileUse
	// noted are the notes already returned for earlier programs.
	noted map[nbcell.Note]bool
}

// NewFindings returns the findings before the first cell.
func NewFindings() Findings {
	return Findings{functions: map[string]fileUse{}, noted: map[nbcell.Note]bool{}}
}

// Add reads a cell.
func (f *Findings) Add(code *nbcell.Code) {
	for _, d := range code.AST.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && fn.Recv == nil {
			f.functions[fn.Name.Name] = filesOf(code, fn)
		}
	}
}
