package export

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
)

// ParametersTag is the tag of cells that declare parameters. InjectedTag is the tag of the cell
// with values that papermill adds.
const (
	ParametersTag = "parameters"
	InjectedTag   = "injected-parameters"
)

// Parameter is a variable or constant that a cell tagged parameters declares.
type Parameter struct {
	CellRef
	// Line is the line in the cell, from 1.
	Line int
	// Name is the parameter's name, Type its Go type, and Default its value as written in the cell.
	Name, Type, Default string
}

// parameters holds the given values and the parameters that the cells declare.
type parameters struct {
	values map[string]string
	// places are the places in a file of values that come from one.
	places   map[string]string
	declared []Parameter
}

// apply records the parameters of a cell and replaces their defaults with the given values. The
// cell's lines keep their numbers.
func (p *parameters) apply(cell *cellInfo, file *gocell.File) error {
	editor, ok := newParameterEditor(cell, file.Text())
	if !ok {
		return nil // parseDecls reports the mistake.
	}
	for _, d := range editor.file.Decls {
		d, ok := d.(*ast.GenDecl)
		if !ok || d.Tok != token.VAR && d.Tok != token.CONST {
			continue
		}
		for _, spec := range d.Specs {
			if err := p.spec(editor, d.Tok, spec.(*ast.ValueSpec)); err != nil {
				return err
			}
		}
	}
	file.SetText(editor.result())
	return nil
}

// given describes how a value was given.
func (p *parameters) given(name string) string {
	if place := p.places[name]; place != "" {
		return fmt.Sprintf("%s: %s: %s", place, name, p.values[name])
	}
	return fmt.Sprintf("-p %s=%s", name, p.values[name])
}

// spec records the parameters of a spec, and sets their values.
func (p *parameters) spec(e *parameterEditor, tok token.Token, spec *ast.ValueSpec) error {
	for i, name := range spec.Names {
		if name.Name == "_" {
			continue
		}
		param := e.describe(spec, i)
		p.declare(param)
		value, given := p.values[name.Name]
		if !given {
			continue
		}
		if err := e.set(tok, spec, i, value); err != nil {
			return e.cell.errorf(param.Line, "%s: %v", p.given(name.Name), err)
		}
	}
	return nil
}

// declare records a parameter. It replaces an earlier one of the same name.
func (p *parameters) declare(param Parameter) {
	at := slices.IndexFunc(p.declared, func(old Parameter) bool { return old.Name == param.Name })
	if at < 0 {
		p.declared = append(p.declared, param)
		return
	}
	p.declared[at] = param
}

// check returns an error for a value whose parameter no cell declares.
func (p *parameters) check(notebook string) error {
	var names []string
	cells := ""
	for _, d := range p.declared {
		if !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
		if cell := "cell " + d.Label(); !strings.Contains(cells+",", cell+",") {
			cells += ", " + cell
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		if slices.Contains(names, name) {
			continue
		}
		what := fmt.Sprintf("%s: %s declares no parameter %s", p.given(name), notebook, name)
		if len(names) == 0 {
			return fmt.Errorf("%s: no cell with a var or const is tagged %s; tag the one that declares it", what, ParametersTag)
		}
		if near := gocell.Nearest(name, names); len(near) > 0 {
			what += "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return fmt.Errorf("%s\nits parameters, in %s, are %s", what, strings.TrimPrefix(cells, ", "), strings.Join(names, ", "))
	}
	return nil
}

// redeclared returns the parameters with given values that an untagged cell declares again.
func (p *parameters) redeclared(decls *cellDecls) (names []string) {
	for _, d := range decls.decls {
		for _, name := range d.names {
			if _, ok := p.values[name]; ok {
				names = append(names, name)
			}
		}
	}
	return names
}

// parameterEditor replaces values in a cell's Go code.
type parameterEditor struct {
	cell  *cellInfo
	src   string
	file  *ast.File
	tok   *token.File
	types map[*ast.Ident]types.Object
	edits []textEdit
}

// textEdit replaces src[from:to] with a string.
type textEdit struct {
	from, to int
	text     string
}

// newParameterEditor parses the cell and finds the types that can be determined from the cell
// alone.
func newParameterEditor(cell *cellInfo, src string) (*parameterEditor, bool) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, parser.SkipObjectResolution)
	if err != nil {
		return nil, false
	}
	e := &parameterEditor{cell: cell, src: src, file: file, tok: fset.File(file.Pos()), types: map[*ast.Ident]types.Object{}}
	check := types.Config{IgnoreFuncBodies: true, Error: func(error) {}} // Declarations of other cells are missing.
	_, _ = check.Check("main", fset, []*ast.File{file}, &types.Info{Defs: e.types})
	return e, true
}

// text returns the source between two positions.
func (e *parameterEditor) text(from, to token.Pos) string {
	return e.src[e.tok.Offset(from):e.tok.Offset(to)]
}

// typeOf returns the type of a spec's name; invalid if the cell alone does not determine it.
func (e *parameterEditor) typeOf(name *ast.Ident) types.Type {
	if obj := e.types[name]; obj != nil && obj.Type() != nil {
		return obj.Type()
	}
	return types.Typ[types.Invalid]
}

// describe returns the parameter for a spec's i-th name.
func (e *parameterEditor) describe(spec *ast.ValueSpec, i int) Parameter {
	name := spec.Names[i]
	p := Parameter{CellRef: e.cell.ref, Line: e.tok.Line(name.Pos()) - headerLines, Name: name.Name}
	kind := newParameterKind(e, spec, i)
	p.Type, p.Default = kind.name, kind.zero()
	switch {
	case i < len(spec.Values):
		p.Default = e.text(spec.Values[i].Pos(), spec.Values[i].End())
	case len(spec.Values) == 1:
		p.Default = e.text(spec.Values[0].Pos(), spec.Values[0].End())
	}
	p.Default = strings.Join(strings.Fields(p.Default), " ")
	return p
}

// set replaces the i-th value of a spec.
func (e *parameterEditor) set(tok token.Token, spec *ast.ValueSpec, i int, value string) error {
	kind := newParameterKind(e, spec, i)
	literal, err := kind.literal(value)
	if err != nil {
		return err
	}
	switch {
	case len(spec.Values) == len(spec.Names):
		from, to := e.tok.Offset(spec.Values[i].Pos()), e.tok.Offset(spec.Values[i].End())
		e.edit(from, to, literal)
		return nil
	case len(spec.Values) > 0:
		return fmt.Errorf("%s gets its value together with others from one call; declare it by itself", spec.Names[i].Name)
	case tok == token.CONST:
		return fmt.Errorf("%s has no value of its own but repeats the line above; give it one", spec.Names[i].Name)
	}
	return e.initialise(spec, i, literal)
}

// initialise adds values to a spec that has none: zero for all but the i-th.
func (e *parameterEditor) initialise(spec *ast.ValueSpec, i int, literal string) error {
	end := e.tok.Offset(spec.End())
	at := slices.IndexFunc(e.edits, func(edit textEdit) bool { return edit.from == end && edit.to == end })
	values := make([]string, len(spec.Names))
	for j := range values {
		values[j] = "*new(" + e.text(spec.Type.Pos(), spec.Type.End()) + ")"
	}
	if at >= 0 {
		return fmt.Errorf("%s is declared together with another parameter that is given; declare it by itself", spec.Names[i].Name)
	}
	values[i] = literal
	e.edit(end, end, " = "+strings.Join(values, ", "))
	return nil
}

// edit records a replacement. It keeps the line breaks of the text it replaces, so that the lines
// below keep their numbers.
func (e *parameterEditor) edit(from, to int, text string) {
	breaks := strings.Repeat("\n", strings.Count(e.src[from:to], "\n"))
	e.edits = append(e.edits, textEdit{from, to, breaks + text})
}

// result returns the source with all edits.
func (e *parameterEditor) result() string {
	slices.SortFunc(e.edits, func(a, b textEdit) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, edit := range e.edits {
		b.WriteString(e.src[at:edit.from])
		b.WriteString(edit.text)
		at = edit.to
	}
	b.WriteString(e.src[at:])
	return b.String()
}
