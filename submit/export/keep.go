package export

import (
	"cmp"
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"gonbatch/internal/gocell"
	"gonbatch/internal/gomodule"
	"gonbatch/internal/plural"
	"gonbatch/submit/export/decl"
	"gonbatch/submit/export/gomod"
	"gonbatch/submit/export/nbcell"
	"gonbatch/submit/export/program"
)

// keepInit is the key of the function that loads kept variables. It sorts before all init_
// functions that users write.
const keepInit = "init_!" + program.KeptFunc

// kept holds the variables that programs keep from a cell on.
type kept struct {
	// at maps each variable to its %keep.
	at map[string]played
	// new are the variables removed since the last program: they start with their initial value.
	new map[string]bool
}

// drop forgets variables and their values.
func (k *kept) drop(names ...string) {
	for _, name := range names {
		delete(k.at, name)
		k.new[name] = true
	}
}

// keep implements %keep: from this cell on, every program starts with the final values of the
// previous one. They are files in the run directory.
func (s *session) keep(m played) error {
	change, err := m.Kept()
	if err != nil {
		return m.errorf("%v", err)
	}
	if !change.Drop {
		for _, name := range change.Names {
			s.kept.at[name] = m
		}
		return nil
	}
	for _, name := range change.Names {
		if _, ok := s.kept.at[name]; !ok {
			s.warn(m.cell, m.Line, "%keep -d "+name+": no %keep above names it")
		}
	}
	s.kept.drop(change.Names...)
	return nil
}

// addKept adds the code that keeps variables to the declarations and to a main.
func (s *session) addKept(cell *nbcell.Cell, main *decl.Decl) {
	s.decls.DeleteFunc(func(key string) bool { return key == keepInit || strings.HasPrefix(key, program.KeptFunc) })
	if len(s.kept.at) == 0 || main == nil {
		return
	}
	var vars, declared strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.kept.at)) {
		m, pointer := s.kept.at[name], program.KeptFunc+"_"+name
		s.decls.AddFunc(decl.NewFunc(m.cell, pointer, fmt.Sprintf("func %s() any { return &%s }", pointer, name), m.Line))
		fmt.Fprintf(&vars, "%q: %s, ", name, pointer)
		fmt.Fprintf(&declared, "%q: %q, ", name, s.declared(name))
	}
	clear(s.kept.new)
	s.decls.AddImport(cell, program.KeepName, gocell.KeepPackage)
	s.decls.AddFunc(decl.NewFunc(cell, program.KeptFunc, fmt.Sprintf("func %s() %s.Vars { return %s.Vars{%s} }", program.KeptFunc, program.KeepName, program.KeepName, strings.TrimSuffix(vars.String(), ", ")), 1))
	s.decls.AddFunc(decl.NewFunc(cell, keepInit, fmt.Sprintf("func init() { %s().Load(%s.Declared{%s}) }", program.KeptFunc, program.KeepName, strings.TrimSuffix(declared.String(), ", ")), 1))
	main.Prepend(" defer " + program.KeptFunc + "().Begin()();") // A main belongs to one program, so its text can change.
}

// packages are the packages that a notebook's cells import.
type packages struct {
	names *gomod.Names
	// found are the packages that goimports has found, by name.
	found map[string]string
	code  *gomodule.Code
}

// newPackages returns the packages of a notebook with its modules as resolved so far.
func newPackages(names *gomod.Names, own *modfile.File, resolved Resolved) packages {
	p := packages{names: names, found: map[string]string{}}
	for _, found := range resolved.Imports {
		maps.Copy(p.found, found)
	}
	p.code = &gomodule.Code{Mod: names.Mod, Own: own, Folders: gomodule.Folders(names.Mod.Replace, names.SourceDir)}
	return p
}

// declared returns the hash of a variable's declaration for package keep, with newMark if earlier
// values don't count. In a session, the hash is the same.
func (s *session) declared(name string) string {
	hash := ""
	if variable := s.decls.Variable(name); variable != "" {
		text := "package main\n" + s.importText() + variable
		declared := gocell.Declarations(gocell.WithoutGone(text))[name]
		hash = declared.Hash(s.packages.code.State(declared.Imports))
	}
	if s.kept.new[name] {
		return newMark + hash
	}
	return hash
}

// importText returns the imports that the kernel remembers, as Go source.
func (s *session) importText() string {
	var text strings.Builder
	for name, path := range s.packages.found {
		fmt.Fprintf(&text, "import %s %q\n", name, path)
	}
	for _, imp := range s.decls.Imports() {
		name := cmp.Or(imp.Name, s.packages.names.Of(imp.Path, nil), gocell.AssumedName(imp.Path))
		fmt.Fprintf(&text, "import %s %q\n", name, imp.Path)
	}
	return text.String()
}

// newMark is package keep's New: the values of earlier programs don't count.
const newMark = "new "

// warnOfInitial warns about kept variables that might have other values if all cells ran.
func (e *exporter) warnOfInitial(cell *nbcell.Cell) {
	if e.Kept {
		return
	}
	var names, numbers []string
	for _, other := range e.skipped {
		used := slices.DeleteFunc(slices.Collect(maps.Keys(e.session.kept.at)), func(name string) bool { return !uses(other.Source, name) })
		if len(used) > 0 {
			names, numbers = append(names, used...), append(numbers, other.Label())
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	names = slices.Compact(names)
	begin, it := "the kept variable "+names[0]+" begins with its initial value", "it"
	if len(names) > 1 {
		begin, it = "the kept variables "+plural.And(names)+" begin with their initial values", "them"
	}
	why := fmt.Sprintf("cell %s, which may change %s, does not run", numbers[0], it)
	if len(numbers) > 1 {
		why = fmt.Sprintf("cells %s, which may change %s, do not run", plural.And(numbers), it)
	}
	e.session.warn(cell, 1, begin+", because "+why+": run all cells, or use --from in place of --cell")
}

// uses reports whether a source names a variable.
func uses(source, name string) bool {
	for t := range gocell.Tokens(source, 0) {
		if t.Kind == token.IDENT && t.Text == name {
			return true
		}
	}
	return false
}
