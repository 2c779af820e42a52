package export

import (
	"go/token"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
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

// decl is one declaration that the kernel remembers: a type, a const block, a var, a tuple of vars,
// a func or a method.
type decl struct {
	// key sorts declarations of the same kind: the first name, or Type~Method.
	key  string
	kind token.Token
	cell *cellInfo
	// names are the declared names, without blanks.
	names []string
	// chunks are its text, including the comment above it.
	chunks []chunk
	// idents are the names of a const block, so that each can be blanked.
	idents []ident
	// renamed maps idents to their new names; "_" in a const block.
	renamed map[string]string
	// words and formatted cache its pieces, and its text with positions.
	words     *pieces
	formatted string
}

// render returns the declaration's gofmt-ed text, with //line directives if positions is set.
func (d *decl) render(positions bool) (string, error) {
	if !positions {
		return formatDecl(d.cell, d.text())
	}
	if d.formatted == "" {
		text, err := renderDecl(d.cell, d.text())
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
func (d *decl) drop(name string) (gone bool) {
	if d.kind != token.CONST {
		return true
	}
	d.rename(name, "_")
	d.names = slices.DeleteFunc(d.names, func(n string) bool { return n == name })
	return len(d.names) == 0
}

// rename gives the idents called name the new name to.
func (d *decl) rename(name, to string) {
	if d.renamed == nil {
		d.renamed = map[string]string{}
	}
	d.renamed[name] = to
	d.formatted = ""
}

// text returns the declaration's chunks with its idents renamed.
func (d *decl) text() []chunk {
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

// importDecl is one import that the kernel remembers.
type importDecl struct {
	name, path string // name is the explicit name, or ""
	doc        []chunk
	cell       *cellInfo
	line       int
}

// key returns the key that distinguishes imports.
func (d *importDecl) key() string { return gocell.ImportKey(d.name, d.path) }
