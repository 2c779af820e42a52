package decl

import (
	"cmp"
	"go/token"
	"maps"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export/nbcell"
)

// Set holds the declarations that the kernel remembers from the cells that ran.
type Set struct {
	imports map[string]*Import
	byName  map[string]*Decl
	// blanks declare no name (var _ = f()), so nothing ever replaces them.
	blanks []*Decl
}

// NewSet returns the declarations of a kernel that has just started: none.
func NewSet() *Set {
	return &Set{imports: map[string]*Import{}, byName: map[string]*Decl{}}
}

// Add remembers a cell's declarations; they replace earlier ones of the same names.
func (s *Set) Add(cell *Cell) {
	for _, imp := range cell.Imports {
		s.imports[gocell.ImportKey(imp.Name, imp.Path)] = imp
	}
	for _, d := range cell.Decls {
		for _, name := range d.Names {
			s.remove(name)
			s.byName[name] = d
		}
		if len(d.Names) == 0 {
			s.blanks = append(s.blanks, d)
		}
	}
}

// remove forgets the declaration of a name and reports whether there was one.
func (s *Set) remove(name string) bool {
	d, ok := s.byName[name]
	if !ok {
		return false
	}
	delete(s.byName, name)
	if d.drop(name) {
		for other, same := range s.byName {
			if same == d {
				delete(s.byName, other)
			}
		}
	}
	return true
}

// DeleteFunc forgets the declarations of the names for which a function returns true.
func (s *Set) DeleteFunc(del func(name string) bool) {
	for name := range s.byName {
		if del(name) {
			s.remove(name)
		}
	}
}

// AddFunc adds a function from NewFunc.
func (s *Set) AddFunc(f *Decl) { s.byName[f.Key] = f }

// AddImport adds an import that no cell wrote, under a name that no cell uses.
func (s *Set) AddImport(cell *nbcell.Cell, name, path string) {
	s.imports[name] = &Import{Name: name, Path: path, Cell: cell, Line: 1}
}

// Variable returns the text that declares a variable; "" if the name is no variable's.
func (s *Set) Variable(name string) (text string) {
	d := s.byName[name]
	if d == nil || d.kind != token.VAR {
		return ""
	}
	for _, c := range d.chunks {
		text += c.text
	}
	return text
}

// Forget implements %rm: it removes an import or a declaration by its key and reports whether there
// was one.
func (s *Set) Forget(key string) bool {
	if _, ok := s.imports[key]; ok {
		delete(s.imports, key)
		return true
	}
	return s.remove(key)
}

// kindOrder is GoNB's order of the kinds of declarations.
var kindOrder = []token.Token{token.TYPE, token.CONST, token.VAR, token.FUNC}

// All returns the declarations in GoNB's order: types, consts, vars, funcs, each by key.
// Variables are initialised and init functions run in this order, so it is part of a notebook's
// meaning.
func (s *Set) All() []*Decl {
	all := slices.AppendSeq(slices.Clone(s.blanks), maps.Values(s.byName))
	slices.SortStableFunc(all, func(a, b *Decl) int {
		return cmp.Or(
			cmp.Compare(slices.Index(kindOrder, a.kind), slices.Index(kindOrder, b.kind)),
			strings.Compare(a.Key, b.Key),
		)
	})
	return slices.Compact(all) // A declaration of several names occurs once for each.
}

// Imports returns the imports by path, then name.
func (s *Set) Imports() []*Import {
	return slices.SortedFunc(maps.Values(s.imports), func(a, b *Import) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Name, b.Name))
	})
}
