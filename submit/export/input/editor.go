package input

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"gonbatch/submit/export/nbcell"
)

// editor replaces values in a cell's Go code.
type editor struct {
	code  *nbcell.Code
	types map[*ast.Ident]types.Object
	edits []textEdit
}

// textEdit replaces src[from:to] with a string.
type textEdit struct {
	from, to int
	text     string
}

// newEditor finds the types that can be determined from the cell alone.
func newEditor(code *nbcell.Code) *editor {
	e := &editor{code: code, types: map[*ast.Ident]types.Object{}}
	check := types.Config{IgnoreFuncBodies: true, Error: func(error) {}} // Declarations of other cells are missing.
	_, _ = check.Check("main", code.Fset, []*ast.File{code.AST}, &types.Info{Defs: e.types})
	return e
}

// typeOf returns the type of a spec's name; invalid if the cell alone does not determine it.
func (e *editor) typeOf(name *ast.Ident) types.Type {
	if obj := e.types[name]; obj != nil && obj.Type() != nil {
		return obj.Type()
	}
	return types.Typ[types.Invalid]
}

// describe returns the parameter for a spec's i-th name.
func (e *editor) describe(spec *ast.ValueSpec, i int) Parameter {
	name := spec.Names[i]
	p := Parameter{Ref: e.code.Cell.Ref, Line: e.code.Line(name.Pos()), Name: name.Name}
	kind := newKind(e, spec, i)
	p.Type, p.Default = kind.name, kind.zero()
	if n := len(spec.Values); n > 0 { // One may be for all names.
		value := spec.Values[min(i, n-1)]
		p.Default = e.code.Between(value.Pos(), value.End())
	}
	p.Default = strings.Join(strings.Fields(p.Default), " ")
	return p
}

// set replaces the i-th value of a spec with a Go expression.
func (e *editor) set(tok token.Token, spec *ast.ValueSpec, i int, literal string) error {
	switch {
	case len(spec.Values) == len(spec.Names):
		e.edit(e.code.Offset(spec.Values[i].Pos()), e.code.Offset(spec.Values[i].End()), literal)
		return nil
	case len(spec.Values) > 0:
		return fmt.Errorf("%s gets its value together with others from one call; declare it by itself", spec.Names[i].Name)
	case tok == token.CONST:
		return fmt.Errorf("%s has no value of its own but repeats the line above; give it one", spec.Names[i].Name)
	case len(spec.Names) > 1:
		return fmt.Errorf("%s is declared together with others, without values; declare it by itself", spec.Names[i].Name)
	}
	end := e.code.Offset(spec.End())
	e.edit(end, end, " = "+literal)
	return nil
}

// edit records a replacement. It keeps the line breaks of the text it replaces, so that the lines
// below keep their numbers.
func (e *editor) edit(from, to int, text string) {
	breaks := strings.Repeat("\n", strings.Count(e.code.Text[from:to], "\n"))
	e.edits = append(e.edits, textEdit{from, to, breaks + text})
}

// result returns the source with all edits.
func (e *editor) result() string {
	slices.SortFunc(e.edits, func(a, b textEdit) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, edit := range e.edits {
		b.WriteString(e.code.Text[at:edit.from])
		b.WriteString(edit.text)
		at = edit.to
	}
	b.WriteString(e.code.Text[at:])
	return b.String()
}
