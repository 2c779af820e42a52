package export

import (
	"cmp"
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
)

// inNotebookOrder returns the declarations in the order of the notebook and true if the program
// then does the same; otherwise it returns them unchanged and false. The order matters because Go
// runs initialisers, init functions and tests in source order.
func inNotebookOrder(decls []*decl, isTest bool) ([]*decl, bool) {
	ordered := slices.Clone(decls)
	slices.SortStableFunc(ordered, func(a, b *decl) int {
		return cmp.Or(cmp.Compare(a.cell.Number, b.cell.Number), cmp.Compare(a.line(), b.line()))
	})
	acting := func(list []*decl, kind token.Token) []*decl {
		return slices.DeleteFunc(slices.Clone(list), func(d *decl) bool {
			acts := d.inPieces().acts || isTest && d.isTest()
			return d.kind != kind || !acts || d.isFlag()
		})
	}
	for _, kind := range []token.Token{token.VAR, token.FUNC} {
		if !slices.Equal(acting(decls, kind), acting(ordered, kind)) {
			return decls, false
		}
	}
	return ordered, true
}

// isFlag reports whether the declaration is a flag of package flag; flags may be defined in any
// order.
func (d *decl) isFlag() bool {
	words := d.inPieces().idents
	for word := range words {
		_, known := flagArguments[word]
		if !known && word != "flag" && word != "true" && word != "false" && !slices.Contains(d.names, word) {
			return false
		}
	}
	return words["flag"]
}

// line returns the declaration's first line in its cell.
func (d *decl) line() int {
	for _, c := range d.chunks {
		if c.line > 0 {
			return c.line
		}
	}
	return 0
}

// howToRun returns a comment with the command, variables and folder that the kernel would use for a
// script.
func (p program) howToRun() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(p.made.Env)) {
		words = append(words, name+"="+shellescape.Quote(p.made.Env[name]))
	}
	words = append(words, "go run "+shellescape.Quote(p.made.Name+".go"))
	if len(p.made.Args) > 0 {
		words = append(words, shellescape.QuoteCommand(p.made.Args))
	}
	text := fmt.Sprintf("// Exported by gonbatch from %s. Run it with:\n//\n//\t%s\n", p.cell.ref.Notebook, printable(strings.Join(words, " ")))
	if p.made.Dir != "" {
		text += fmt.Sprintf("//\n// in the folder %s.\n", printable(p.made.Dir))
	}
	return text + "\n"
}

// checkScript returns an error if the notebook does not fit into one Go file.
func (m *Module) checkScript() error {
	programs := m.Programs()
	switch {
	case len(programs) == 0:
		return fmt.Errorf("%s has no program to write as a script", m.Notebook)
	case len(programs) > 1:
		return fmt.Errorf("%s has %d programs, and a script has one: pick one with --cell (%s), or export a module", m.Notebook, len(programs), strings.Join(cellNames(programs), ", "))
	case len(m.Cells) > 1:
		return fmt.Errorf("%s has shell commands, and a script has only Go: pick the program with --cell %s, or export a module", m.Notebook, programs[0].Name)
	case programs[0].Test:
		return fmt.Errorf("%s: cell %s runs tests, which need a module: export one", m.Notebook, programs[0].Name)
	}
	for _, name := range m.FileNames() {
		if strings.HasPrefix(name, programs[0].Name+"/") && name != programs[0].Source() {
			return fmt.Errorf("%s: cell %s embeds %s, and a script is one file: export a module", m.Notebook, programs[0].Name, name)
		}
	}
	return nil
}

// Script returns the only program of a module exported with Options.Script, as one file.
func (m *Module) Script() []byte { return m.Files[m.Programs()[0].Source()] }
