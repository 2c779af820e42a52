package cell

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"

	"gonbatch/internal/gocell"
)

// edit replaces the text between two offsets of the cell's Go file. Both are in one line.
type edit struct {
	start, end int
	text       string
}

// editor collects the changes to the declarations that GoNB would compose wrongly.
type editor struct {
	text string
	// id identifies the cell; it may be empty.
	id    string
	set   *token.FileSet
	edits []edit
	// named counts the blanks that got a name with a given beginning.
	named map[string]int
}

func (e *editor) offset(pos token.Pos) int { return e.set.PositionFor(pos, false).Offset }

// source returns the text of a node.
func (e *editor) source(n ast.Node) string { return e.text[e.offset(n.Pos()):e.offset(n.End())] }

func (e *editor) replace(from, to token.Pos, text string) {
	e.edits = append(e.edits, edit{e.offset(from), e.offset(to), text})
}

// editDeclarations changes the declarations that GoNB would compose wrongly: constants, and
// variables without a name.
func (p *preparer) editDeclarations() error {
	e := editor{text: p.file.Text(), id: p.id, set: token.NewFileSet(), named: map[string]int{}}
	file, err := parser.ParseFile(e.set, "", e.text, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil // GoNB will report it.
	}
	if at, ok := gocell.EmbedLine(file); ok {
		line, _ := p.file.Place(e.offset(at))
		return fmt.Errorf("line %d: %w", line, gocell.ErrEmbed)
	}
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		switch {
		case ok && group.Tok == token.CONST:
			e.constants(group)
		case ok && group.Tok == token.VAR:
			e.blanks(group)
		}
	}
	apply(p.lines, p.file, e.edits)
	return nil
}

// apply makes the changes, the last first: each moves what follows it.
func apply(lines []string, f gocell.File, edits []edit) {
	slices.SortStableFunc(edits, func(a, b edit) int { return b.start - a.start })
	for _, x := range edits {
		line, column := f.Place(x.start)
		text := lines[line-1]
		lines[line-1] = text[:column] + x.text + text[column+x.end-x.start:]
	}
}

// blanks names the variables without a name that have a value: GoNB would compose them twice.
func (e *editor) blanks(group *ast.GenDecl) {
	for _, spec := range group.Specs {
		if spec := spec.(*ast.ValueSpec); len(spec.Values) > 0 {
			e.nameBlanks(spec)
		}
	}
}

// nameBlanks gives the blanks in a specification names that no other declaration has. If the cell
// runs again, it has the same names, and so replaces its own declarations.
func (e *editor) nameBlanks(spec *ast.ValueSpec) {
	for _, name := range spec.Names {
		if name.Name != blank {
			continue
		}
		sum := sha256.Sum256([]byte(cmp.Or(e.id, e.source(spec))))
		key := blankPrefix + hex.EncodeToString(sum[:4])
		e.replace(name.Pos(), name.End(), fmt.Sprintf("%s_%d", key, e.named[key]))
		e.named[key]++
	}
}

// blank is the name that declares nothing; blankPrefix begins the names that replace it.
const (
	blank       = "_"
	blankPrefix = "gonbatch__blank_"
)

// namedBlank matches the name of a blank.
var namedBlank = regexp.MustCompile(blankPrefix + `[0-9a-f]{8}_\d+`)
