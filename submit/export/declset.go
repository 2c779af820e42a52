package export

import (
	"cmp"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// declSet holds the declarations that the kernel remembers from the cells that ran.
type declSet struct {
	imports map[string]*importDecl
	byName  map[string]*decl
	// blanks declare no name (var _ = f()), so nothing ever replaces them.
	blanks []*decl
}

// newDeclSet returns the declarations of a kernel that has just started: none.
func newDeclSet() *declSet {
	return &declSet{imports: map[string]*importDecl{}, byName: map[string]*decl{}}
}

// add remembers a cell's declarations; they replace earlier ones of the same names.
func (s *declSet) add(cell *cellDecls) {
	for _, imp := range cell.imports {
		s.imports[imp.key()] = imp
	}
	for _, d := range cell.decls {
		for _, name := range d.names {
			s.remove(name)
			s.byName[name] = d
		}
		if len(d.names) == 0 {
			s.blanks = append(s.blanks, d)
		}
	}
}

// remove forgets the declaration of a name and reports whether there was one.
func (s *declSet) remove(name string) bool {
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

// forget implements %rm: it removes an import or a declaration by its key and reports whether there
// was one.
func (s *declSet) forget(key string) bool {
	if _, ok := s.imports[key]; ok {
		delete(s.imports, key)
		return true
	}
	return s.remove(key)
}

// kindOrder is GoNB's order of the kinds of declarations.
var kindOrder = []token.Token{token.TYPE, token.CONST, token.VAR, token.FUNC}

// sorted returns the declarations in GoNB's order: types, consts, vars, funcs, each by key.
// Variables are initialised and init functions run in this order, so it is part of a notebook's
// meaning.
func (s *declSet) sorted() []*decl {
	all := slices.AppendSeq(slices.Clone(s.blanks), maps.Values(s.byName))
	slices.SortStableFunc(all, func(a, b *decl) int {
		return cmp.Or(
			cmp.Compare(slices.Index(kindOrder, a.kind), slices.Index(kindOrder, b.kind)),
			strings.Compare(a.key, b.key),
		)
	})
	return slices.Compact(all) // A declaration of several names occurs once for each.
}

// sortedImports returns the imports by path, then name.
func (s *declSet) sortedImports() []*importDecl {
	return slices.SortedFunc(maps.Values(s.imports), func(a, b *importDecl) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.name, b.name))
	})
}
