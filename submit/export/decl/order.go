package decl

import (
	"cmp"
	"go/token"
	"slices"

	"gonbatch/submit/export/input"
)

// InNotebookOrder returns the declarations in the order of the notebook and true if the program
// then does the same; otherwise it returns them unchanged and false. The order matters because Go
// runs initialisers, init functions and tests in source order.
func InNotebookOrder(decls []*Decl, isTest bool) ([]*Decl, bool) {
	ordered := slices.Clone(decls)
	slices.SortStableFunc(ordered, func(a, b *Decl) int {
		return cmp.Or(cmp.Compare(a.Cell.Number, b.Cell.Number), cmp.Compare(a.line(), b.line()))
	})
	acting := func(list []*Decl, kind token.Token) []*Decl {
		return slices.DeleteFunc(slices.Clone(list), func(d *Decl) bool {
			acts := d.inPieces().acts || isTest && d.IsTest()
			return d.kind != kind || !acts || d.isFlag() || d.isLate()
		})
	}
	for _, kind := range []token.Token{token.VAR, token.FUNC} {
		if !slices.Equal(acting(decls, kind), acting(ordered, kind)) {
			return decls, false
		}
	}
	return ordered, true
}

// LateFirst returns the declarations, first those of parameters that get their values when the
// program starts: like values in the source, they are there before any other initialiser runs, even
// where Go doesn't see that it needs them, as in a method that is called through an interface.
func LateFirst(decls []*Decl) []*Decl {
	decls = slices.Clone(decls)
	slices.SortStableFunc(decls, func(a, b *Decl) int {
		switch {
		case a.isLate() == b.isLate():
			return 0
		case a.isLate():
			return -1
		}
		return 1
	})
	return decls
}

// isLate reports whether the declaration is of a parameter that gets its value when the program
// starts.
func (d *Decl) isLate() bool { return d.inPieces().idents[input.RunTimeFunc] }

// isFlag reports whether the declaration is a flag of package flag; flags may be defined in any
// order.
func (d *Decl) isFlag() bool {
	words := d.inPieces().idents
	for word := range words {
		if !input.IsDefining(word) && word != "flag" && word != "true" && word != "false" && !slices.Contains(d.Names, word) {
			return false
		}
	}
	return words["flag"]
}
