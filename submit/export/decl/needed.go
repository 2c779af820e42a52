package decl

import (
	"go/token"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
)

// pieces are the parts of a declaration that show what a program needs.
type pieces struct {
	// idents are all names that it declares, uses or selects.
	idents map[string]bool
	// acts is set if the declaration has an effect even if nothing names it.
	acts bool
}

// inPieces returns the declaration's pieces, computed once.
func (d *Decl) inPieces() pieces {
	if d.words != nil {
		return *d.words
	}
	p := pieces{idents: map[string]bool{}}
	for _, c := range d.chunks {
		p.read(c.text)
	}
	p.acts = d.isActive(p.acts)
	d.words = &p
	return p
}

// isActive reports whether the program runs the declaration even if nothing names it. calls is set
// if its initialiser may have an effect.
func (d *Decl) isActive(calls bool) bool {
	for _, c := range d.chunks {
		if strings.Contains(c.text, "//export ") || strings.Contains(c.text, "//go:linkname ") {
			return true // C or another package refers to it.
		}
	}
	switch {
	case len(d.Names) == 0:
		return true
	case d.kind == token.FUNC:
		return d.Key == "main" || d.Key == "init" || strings.HasPrefix(d.Key, gocell.InitPrefix)
	case d.kind == token.VAR:
		return calls
	}
	return false
}

// effects are tokens of expressions that may call, wait or panic; some of them are harmless.
var effects = map[token.Token]bool{
	token.LPAREN: true, token.ARROW: true, token.MUL: true, token.QUO: true, token.REM: true, token.SHL: true, token.SHR: true,
	token.PERIOD: true,
}

// read adds the words of a string.
func (p *pieces) read(text string) {
	before := token.ILLEGAL
	for t := range gocell.Tokens(text, 0) {
		switch {
		case t.Kind == token.IDENT:
			p.idents[t.Text] = true
		case before == token.LBRACK && t.Kind != token.RBRACK && t.Kind != token.ELLIPSIS, effects[t.Kind]:
			p.acts = true // An index may be out of range.
		}
		before = t.Kind
	}
}

// Needed returns the declarations that a program needs, in order: those that its main names,
// directly or through others, those that act by themselves, and those for which the function also
// returns true.
func Needed(all []*Decl, main *Decl, also func(*Decl) bool) []*Decl {
	aliases := map[string]string{}
	for _, d := range all {
		if d.aliased != "" && len(d.Names) == 1 {
			aliases[d.Names[0]] = d.aliased
		}
	}
	byName := map[string][]*Decl{}
	for _, d := range all {
		for _, name := range d.Names {
			typeName, _, isMethod := strings.Cut(name, "~")
			byName[typeName] = append(byName[typeName], d)
			if base := resolved(typeName, aliases); isMethod && base != typeName { // A method is needed if its type is.
				byName[base] = append(byName[base], d)
			}
		}
	}
	kept := map[*Decl]bool{}
	open := []*Decl{main}
	for _, d := range all {
		if d.inPieces().acts || also(d) {
			open = append(open, d)
		}
	}
	for len(open) > 0 {
		d := open[len(open)-1]
		open = open[:len(open)-1]
		if kept[d] {
			continue
		}
		kept[d] = true
		for name := range d.inPieces().idents {
			open = append(open, byName[name]...)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(d *Decl) bool { return !kept[d] })
}

// resolved returns the type that a name stands for.
func resolved(name string, aliases map[string]string) string {
	for range len(aliases) { // A cycle is a mistake that the compiler names.
		base, ok := aliases[name]
		if !ok {
			break
		}
		name = base
	}
	return name
}
