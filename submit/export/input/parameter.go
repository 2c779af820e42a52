package input

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/internal/nearest"
	"gonbatch/submit/export/nbcell"
)

// Parameter is a variable or constant that a cell tagged parameters declares.
type Parameter struct {
	nbcell.Ref
	// Line is the line in the cell, from 1.
	Line int
	// Name is the parameter's name, Type its Go type, and Default its value as written in the cell.
	Name, Type, Default string
}

// Parameters holds the given values and the parameters that the cells declare.
type Parameters struct {
	// Values are the given values by name, and Places the places in a file of those that come from
	// one.
	Values, Places map[string]string
	// AtRunTime are the names of parameters that get their values when the program starts, if their
	// types allow that: programs with other values of them are the same. Their values are in Late,
	// in JSON.
	AtRunTime []string
	Late      map[string]json.RawMessage
	// Declared are the parameters of the cells so far.
	Declared []Parameter
}

// Apply records the parameters of a cell and replaces their defaults with the given values. The
// cell's lines keep their numbers.
func (p *Parameters) Apply(cell *nbcell.Cell, file *gocell.File) error {
	code, err := cell.Parse(*file)
	if err != nil {
		return err
	}
	editor := newEditor(code)
	for _, d := range code.AST.Decls {
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
func (p *Parameters) given(name string) string {
	if place := p.Places[name]; place != "" {
		return fmt.Sprintf("%s: %s: %s", place, name, p.Values[name])
	}
	return fmt.Sprintf("-p %s=%s", name, p.Values[name])
}

// spec records the parameters of a spec, and sets their values.
func (p *Parameters) spec(e *editor, tok token.Token, spec *ast.ValueSpec) error {
	for i, name := range spec.Names {
		if name.Name == "_" {
			continue
		}
		param := e.describe(spec, i)
		p.declare(param)
		value, given := p.Values[name.Name]
		if !given {
			continue
		}
		if err := p.set(e, tok, spec, i, value); err != nil {
			return e.code.Cell.Errorf(param.Line, "%s: %v", p.given(name.Name), err)
		}
	}
	return nil
}

// set gives the i-th name of a spec its value: in the source, or when the program starts.
func (p *Parameters) set(e *editor, tok token.Token, spec *ast.ValueSpec, i int, text string) error {
	name, kind := spec.Names[i].Name, newKind(e, spec, i)
	literal, err := kind.literal(text)
	if err != nil {
		return err
	}
	delete(p.Late, name) // Of an earlier declaration.
	if tok == token.VAR && slices.Contains(p.AtRunTime, name) {
		if call, value, ok := kind.atRunTime(name, text); ok {
			literal, p.Late[name] = call, json.RawMessage(value)
		}
	}
	return e.set(tok, spec, i, literal)
}

// declare records a parameter. It replaces an earlier one of the same name.
func (p *Parameters) declare(param Parameter) {
	at := slices.IndexFunc(p.Declared, func(old Parameter) bool { return old.Name == param.Name })
	if at < 0 {
		p.Declared = append(p.Declared, param)
		return
	}
	p.Declared[at] = param
}

// Check returns an error for a value whose parameter no cell declares.
func (p *Parameters) Check(notebook string) error {
	var names []string
	cells := ""
	for _, d := range p.Declared {
		if !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
		if cell := "cell " + d.Label(); !strings.Contains(cells+",", cell+",") {
			cells += ", " + cell
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Values)) {
		if slices.Contains(names, name) {
			continue
		}
		what := fmt.Sprintf("%s: %s declares no parameter %s", p.given(name), notebook, name)
		if len(names) == 0 {
			return fmt.Errorf("%s: no cell with a var or const is tagged %s; tag the one that declares it", what, nbcell.ParametersTag)
		}
		if near := nearest.Words(name, names); len(near) > 0 {
			what += "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return fmt.Errorf("%s\nits parameters, in %s, are %s", what, strings.TrimPrefix(cells, ", "), strings.Join(names, ", "))
	}
	return nil
}
