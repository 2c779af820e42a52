// Package decl holds the declarations that a kernel remembers from a notebook's cells, and writes
// them as Go source with //line directives. As in GoNB, a later declaration replaces an earlier one
// of the same name. It makes no programs (submit/export/program does) and runs no magics.
//
//	cell, err := decl.In(code) // the declarations of one cell
//	set := decl.NewSet()
//	set.Add(cell)
//	for _, d := range decl.Needed(set.All(), cell.Main, func(*decl.Decl) bool { return false }) {
//		text, err := d.Render(true)
//	}
package decl

import (
	"go/token"
	"slices"
	"strings"

	"gonbatch/submit/export/nbcell"
)

// chunk is a piece of a declaration's text. Its lines are those of the cell from line on; a chunk
// with line 0 comes from no cell.
type chunk struct {
	text string
	line int
}

// ident is the position of one of a declaration's names in its last chunk.
type ident struct {
	name   string
	offset int
}

// Decl is one declaration that the kernel remembers: a type, a const block, a var, a tuple of vars,
// a func or a method.
type Decl struct {
	// Key sorts declarations of the same kind: the first name, or Type~Method.
	Key string
	// Names are the declared names, without blanks.
	Names []string
	// Cell is the cell that has it.
	Cell *nbcell.Cell
	kind token.Token
	// chunks are its text, including the comment above it.
	chunks []chunk
	// idents are the names of a const block, so that each can be blanked.
	idents []ident
	// renamed maps idents to their new names; "_" in a const block.
	renamed map[string]string
	// aliased is the name of the type that the declaration is an alias of; "" if it is none.
	aliased string
	// words and formatted cache its pieces, and its text with positions.
	words     *pieces
	formatted string
}

// Render returns the declaration's gofmt-ed text, with //line directives if positions is set.
func (d *Decl) Render(positions bool) (string, error) {
	if !positions {
		return formatted(d.Cell, d.text())
	}
	if d.formatted == "" {
		text, err := withDirectives(d.Cell, d.text())
		if err != nil {
			return "", err
		}
		d.formatted = text
	}
	return d.formatted, nil
}

// drop takes one name out of the declaration and reports whether that leaves none. A const block
// keeps the line with a blank for the name, so that iota counts as before; a tuple goes as a whole,
// as in GoNB.
func (d *Decl) drop(name string) (gone bool) {
	if d.kind != token.CONST {
		return true
	}
	d.rename(name, "_")
	d.Names = slices.DeleteFunc(d.Names, func(n string) bool { return n == name })
	return len(d.Names) == 0
}

// rename gives the idents called name the new name to.
func (d *Decl) rename(name, to string) {
	if d.renamed == nil {
		d.renamed = map[string]string{}
	}
	d.renamed[name] = to
	d.formatted = ""
}

// text returns the declaration's chunks with its idents renamed.
func (d *Decl) text() []chunk {
	if len(d.renamed) == 0 {
		return d.chunks
	}
	out := slices.Clone(d.chunks)
	last := &out[len(out)-1]
	var b strings.Builder
	pos := 0
	for _, id := range d.idents {
		to, ok := d.renamed[id.name]
		if !ok {
			continue
		}
		b.WriteString(last.text[pos:id.offset])
		b.WriteString(to)
		pos = id.offset + len(id.name)
	}
	b.WriteString(last.text[pos:])
	last.text = b.String()
	return out
}

// NewFunc returns a function that no cell wrote. Messages about it name a line of a cell.
func NewFunc(cell *nbcell.Cell, name, text string, line int) *Decl {
	return &Decl{Key: name, kind: token.FUNC, Cell: cell, Names: []string{name}, chunks: []chunk{{text: text, line: line}}}
}

// Prepend adds statements at the beginning of a function's body.
func (d *Decl) Prepend(statements string) {
	last := &d.chunks[len(d.chunks)-1]
	if at := strings.Index(last.text, "{"); at >= 0 {
		last.text = last.text[:at+1] + statements + last.text[at+1:]
	}
}

// IsTest reports whether the declaration is a test or a benchmark.
func (d *Decl) IsTest() bool {
	named := strings.HasPrefix(d.Key, "Benchmark") || strings.HasPrefix(d.Key, "Test") && d.Key != "TestMain"
	return named && d.kind == token.FUNC && !strings.Contains(d.Key, "~")
}

// line returns the declaration's first line in its cell.
func (d *Decl) line() int {
	for _, c := range d.chunks {
		if c.line > 0 {
			return c.line
		}
	}
	return 0
}

// Import is one import that the kernel remembers.
type Import struct {
	// Name is the explicit name, or "".
	Name, Path string
	// Doc is the comment above it, with its line ends.
	Doc string
	// Cell and Line are its place.
	Cell *nbcell.Cell
	Line int
}
