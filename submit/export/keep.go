package export

import (
	"fmt"
	"go/token"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
)

// The names that %keep adds to programs; no cell has them.
const (
	keepName = "gonbatch__keep"
	keptFunc = "gonbatch__kept"
	// keepInit sorts before all init_ functions that people write.
	keepInit = "init_!gonbatch__kept"
)

// keep is %keep: from this cell on, every program starts with the values that the one before it
// ended with. They are files in the run directory.
func (s *session) keep(m played) error {
	change, err := m.Kept()
	if err != nil {
		return m.errorf("%v", err)
	}
	s.kept = slices.DeleteFunc(s.kept, func(name string) bool { return slices.Contains(change.Names, name) })
	if !change.Drop {
		s.kept = append(s.kept, change.Names...)
	}
	slices.Sort(s.kept)
	s.kept = slices.Compact(s.kept)
	return nil
}

// addKept adds the code that keeps the variables to the declarations and to a main.
func (s *session) addKept(cell *cellInfo, main *decl) {
	s.decls.remove(keptFunc)
	s.decls.remove(keepInit)
	if len(s.kept) == 0 || main == nil {
		return
	}
	var vars strings.Builder
	for _, name := range s.kept {
		fmt.Fprintf(&vars, "%q: &%s, ", name, name)
	}
	s.addImport(cell, keepName, gocell.KeepPackage)
	s.addFunc(cell, keptFunc, fmt.Sprintf("func %s() %s.Vars { return %s.Vars{%s} }", keptFunc, keepName, keepName, strings.TrimSuffix(vars.String(), ", ")))
	s.addFunc(cell, keepInit, fmt.Sprintf("func init() { %s().Load() }", keptFunc))
	// A main belongs to one program, so its text can change.
	last := &main.chunks[len(main.chunks)-1]
	if at := strings.Index(last.text, "{"); at >= 0 {
		last.text = last.text[:at+1] + " defer " + keptFunc + "().Save();" + last.text[at+1:]
	}
}

// addFunc adds a function that no cell wrote.
func (s *session) addFunc(cell *cellInfo, key, text string) {
	s.decls.byName[key] = &decl{key: key, kind: token.FUNC, cell: cell, names: []string{key}, chunks: []chunk{{text: text, line: 1}}}
}

// keepImports are the imports with which a program's variables can be kept, if it keeps any.
func keepImports(imports []importLine) (lines []importLine) {
	var paths []string
	for _, line := range imports {
		paths = append(paths, line.path)
	}
	if !slices.Contains(paths, gocell.KeepPackage) {
		return nil
	}
	for _, path := range gocell.KeepImports(paths) {
		lines = append(lines, importLine{name: "_", path: path})
	}
	return lines
}
