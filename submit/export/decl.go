package export

import (
	"go/token"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
)

// chunk is a piece of a declaration's text. The lines of an aligned chunk are lines of the cell,
// from line on; those of a chunk with line 0 are from no cell.
type chunk struct {
	text string
	line int
}

// ident is a place in a declaration's last chunk where one of its names stands.
type ident struct {
	name   string
	offset int
}

// decl is one declaration that the kernel remembers: a type, a const block, a var, a tuple of vars,
// a func or a method.
type decl struct {
	// key orders declarations of a kind: the first name, or Type~Method.
	key  string
	kind token.Token
	cell *cellInfo
	// names are what it declares, without blanks.
	names []string
	// chunks are its text, the comment above it included.
	chunks []chunk
	// idents are the names of a const block, so that single ones can be blanked.
	idents []ident
	// renamed is the name that the idents get; "_" for those of a const block.
	renamed map[string]string
	// words and formatted are what was found out about it: its pieces, and its text with positions.
	words     *pieces
	formatted string
}

// render returns the declaration's text gofmt-ed, with //line directives if they are wanted.
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

// drop takes one name out of the declaration and reports whether that leaves none. A const
// block keeps the line with a blank for the name, so that iota counts on as before; of a tuple
// nothing is left, as in GoNB.
func (d *decl) drop(name string) (gone bool) {
	if d.kind != token.CONST {
		return true
	}
	d.rename(name, "_")
	d.names = slices.DeleteFunc(d.names, func(n string) bool { return n == name })
	return len(d.names) == 0
}

// rename gives the idents called name another name.
func (d *decl) rename(name, to string) {
	if d.renamed == nil {
		d.renamed = map[string]string{}
	}
	d.renamed[name] = to
	d.formatted = ""
}

// text is the declaration's chunks with the renamed idents.
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
	name, path string // name is the explicit one, or ""
	doc        []chunk
	cell       *cellInfo
	line       int
}

// key tells imports apart.
func (d *importDecl) key() string { return gocell.ImportKey(d.name, d.path) }
