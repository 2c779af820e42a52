package cell

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/gocell"
)

// constants writes out the constants of a declaration that has several names on a line, or blanks:
// GoNB gives each name a line of its own, so that iota would count further, and it loses a
// declaration that begins with a blank.
func (e *editor) constants(group *ast.GenDecl) {
	several, blanks, names := false, 0, 0
	for _, spec := range group.Specs {
		spec := spec.(*ast.ValueSpec)
		several = several || len(spec.Names) > 1
		names += len(spec.Names)
		blanks += len(spec.Names) - len(gocell.Named(spec.Names))
	}
	if !several && blanks == 0 || blanks == names {
		return
	}
	var last *ast.ValueSpec // the last one with values, which the ones after it repeat
	for iota, spec := range group.Specs {
		spec := spec.(*ast.ValueSpec)
		implicit := len(spec.Values) == 0
		if !implicit {
			last = spec
		}
		switch {
		case len(gocell.Named(spec.Names)) == 0:
			e.erase(spec)
			continue
		case implicit && last != nil:
			e.replace(spec.End(), spec.End(), e.repeated(last, iota))
		case !implicit:
			e.number(spec, iota)
		}
		e.nameBlanks(spec)
	}
}

// number replaces iota in the values of a specification.
func (e *editor) number(spec *ast.ValueSpec, iota int) {
	for _, at := range iotas(spec) {
		e.replace(at.Pos(), at.End(), strconv.Itoa(iota))
	}
}

// repeated returns the type and the values of a specification, on one line, as they are at another
// iota.
func (e *editor) repeated(spec *ast.ValueSpec, iota int) string {
	begin := spec.Names[len(spec.Names)-1].End()
	numbers := map[int]bool{}
	for _, at := range iotas(spec) {
		numbers[e.offset(at.Pos())-e.offset(begin)] = true
	}
	var words []string
	for t := range gocell.Tokens(e.text[e.offset(begin):e.offset(spec.End())], 0) {
		word := cmp.Or(t.Text, t.Kind.String())
		switch {
		case numbers[t.Offset]:
			word = strconv.Itoa(iota)
		case t.Kind == token.SEMICOLON:
			word = ";" // or the end of a line
		case t.Kind == token.STRING && strings.Contains(word, "\n"):
			value, _ := strconv.Unquote(gocell.WithoutGone(word)) // It has been parsed.
			word = strconv.Quote(value)
		}
		words = append(words, word)
	}
	return " " + strings.TrimSuffix(strings.Join(words, " "), " ;")
}

// iotas returns the places of iota in a specification's values.
func iotas(spec *ast.ValueSpec) (found []*ast.Ident) {
	for _, value := range spec.Values {
		ast.Inspect(value, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				found = slices.Concat(found, iotas(&ast.ValueSpec{Values: []ast.Expr{sel.X}}))
				return false
			}
			if id, ok := n.(*ast.Ident); ok && id.Name == "iota" {
				found = append(found, id)
			}
			return true
		})
	}
	return found
}

// erase removes a specification, and a semicolon after it.
func (e *editor) erase(spec *ast.ValueSpec) {
	begin, end := e.offset(spec.Pos()), e.offset(spec.End())
	if rest := strings.TrimLeft(e.text[end:], " \t"); strings.HasPrefix(rest, ";") {
		end = len(e.text) - len(rest) + 1
	}
	for line := range strings.Lines(e.text[begin:end]) {
		e.edits = append(e.edits, edit{begin, begin + len(strings.TrimSuffix(line, "\n")), ""})
		begin += len(line)
	}
}
