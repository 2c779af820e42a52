package decl

import (
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export/nbcell"
)

// Cell has the declarations of one cell.
type Cell struct {
	Imports []*Import
	Decls   []*Decl
	// Main is the cell's main function, or nil.
	Main *Decl
}

// reader turns the Go code of one cell into declarations.
type reader struct {
	*nbcell.Code
	out Cell
}

// In returns the declarations in a cell's Go code. Its error is an *nbcell.Error.
func In(code *nbcell.Code) (*Cell, error) {
	r := &reader{Code: code}
	if at, ok := gocell.EmbedLine(r.AST); ok {
		return nil, r.Cell.Errorf(r.Line(at), "%v", gocell.ErrEmbed)
	}
	for _, d := range code.AST.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if err := r.function(d); err != nil {
				return nil, err
			}
		case *ast.GenDecl:
			r.general(d)
		}
	}
	return &r.out, nil
}

// chunk returns the text between two positions.
func (r *reader) chunk(from, to token.Pos) chunk {
	return chunk{text: r.Between(from, to), line: r.Line(from)}
}

// withDoc returns the chunks of a declaration and the comment above it.
func (r *reader) withDoc(doc *ast.CommentGroup, body ...chunk) []chunk {
	if doc == nil {
		return body
	}
	c := r.chunk(doc.Pos(), doc.End())
	c.text += "\n"
	return append([]chunk{c}, body...)
}

// function adds a function, a method, or the main.
func (r *reader) function(d *ast.FuncDecl) error {
	name := d.Name.Name
	f := &Decl{Key: gocell.FuncKey(d), kind: token.FUNC, Cell: r.Cell, Names: gocell.Declared(d)}
	f.chunks = r.withDoc(d.Doc, r.chunk(d.Pos(), d.End()))
	switch {
	case f.Key == "main" && r.out.Main != nil:
		return r.Cell.Errorf(r.Line(d.Pos()), "%v", gocell.ErrTwoMains)
	case f.Key == "main":
		r.out.Main = f
		return nil
	case f.Key == "_":
		f.Key = r.blankKey(d.Pos())
	case d.Recv == nil && strings.HasPrefix(name, gocell.InitPrefix):
		f.idents = []ident{{name, int(d.Name.Pos() - d.Pos())}}
		f.rename(name, "init")
	}
	r.out.Decls = append(r.out.Decls, f)
	return nil
}

// blankKey returns the key of a declaration without a name.
func (r *reader) blankKey(pos token.Pos) string {
	return fmt.Sprintf("_~%06d~%06d", r.Cell.Number, r.Offset(pos))
}

// general adds the imports, types, consts or vars of a declaration.
func (r *reader) general(d *ast.GenDecl) {
	if d.Tok == token.CONST {
		r.constBlock(d)
		return
	}
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.ImportSpec:
			r.importSpec(d, spec)
		case *ast.TypeSpec:
			t := &Decl{Key: r.keyOf(spec.Name), kind: token.TYPE, Cell: r.Cell, Names: gocell.Named([]*ast.Ident{spec.Name})}
			t.chunks = r.spec(d, spec, spec.Doc, spec.Comment)
			if spec.Assign.IsValid() {
				t.aliased = baseName(spec.Type)
			}
			r.out.Decls = append(r.out.Decls, t)
		case *ast.ValueSpec:
			r.varSpec(d, spec)
		}
	}
}

// baseName returns the name of the type of the program that an expression is, or points to; "" if
// it is another.
func baseName(x ast.Expr) string {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		return x.Name
	case *ast.StarExpr:
		return baseName(x.X)
	}
	return ""
}

// importSpec adds an import.
func (r *reader) importSpec(d *ast.GenDecl, spec *ast.ImportSpec) {
	path, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return // The parser has refused it already.
	}
	imp := &Import{Path: path, Cell: r.Cell, Line: r.Line(spec.Path.Pos())}
	if spec.Name != nil {
		imp.Name = spec.Name.Name
	}
	if doc := docOf(d, spec.Doc); doc != nil {
		imp.Doc = r.Between(doc.Pos(), doc.End()) + "\n"
	}
	r.out.Imports = append(r.out.Imports, imp)
}

// docOf returns the comment above a spec: its own, doc, or the declaration's if that has no
// parentheses.
func docOf(d *ast.GenDecl, doc *ast.CommentGroup) *ast.CommentGroup {
	if !d.Lparen.IsValid() {
		return d.Doc
	}
	return doc
}

// spec returns the chunks of one spec, as a separate declaration.
func (r *reader) spec(d *ast.GenDecl, spec ast.Spec, doc, comment *ast.CommentGroup) []chunk {
	end := spec.End()
	if comment != nil {
		end = comment.End()
	}
	doc = docOf(d, doc)
	if !d.Lparen.IsValid() {
		return r.withDoc(doc, r.chunk(d.Pos(), end))
	}
	return r.withDoc(doc, chunk{text: d.Tok.String() + " "}, r.chunk(spec.Pos(), end))
}

// varSpec adds the variables of a spec: one by one, or as a tuple if one call gives them all their
// values.
func (r *reader) varSpec(d *ast.GenDecl, spec *ast.ValueSpec) {
	if len(spec.Names) == 1 || len(spec.Values) == 1 {
		v := &Decl{Key: r.keyOf(spec.Names[0]), kind: token.VAR, Cell: r.Cell, Names: gocell.Named(spec.Names)}
		v.chunks = r.spec(d, spec, spec.Doc, spec.Comment)
		r.out.Decls = append(r.out.Decls, v)
		return
	}
	for i, name := range spec.Names {
		v := &Decl{Key: r.keyOf(name), kind: token.VAR, Cell: r.Cell, Names: gocell.Named([]*ast.Ident{name})}
		v.chunks = []chunk{{text: "var "}, r.chunk(name.Pos(), name.End())}
		if spec.Type != nil {
			v.chunks = append(v.chunks, chunk{text: " "}, r.chunk(spec.Type.Pos(), spec.Type.End()))
		}
		if i < len(spec.Values) {
			v.chunks = append(v.chunks, chunk{text: " = "}, r.chunk(spec.Values[i].Pos(), spec.Values[i].End()))
		}
		if i == 0 {
			v.chunks = r.withDoc(docOf(d, spec.Doc), v.chunks...)
		}
		r.out.Decls = append(r.out.Decls, v)
	}
}

// constBlock adds a const declaration as a whole, because its lines depend on one another.
func (r *reader) constBlock(d *ast.GenDecl) {
	if len(d.Specs) == 0 {
		return
	}
	end := d.End()
	if comment := d.Specs[0].(*ast.ValueSpec).Comment; !d.Lparen.IsValid() && comment != nil {
		end = comment.End()
	}
	c := &Decl{kind: token.CONST, Cell: r.Cell, chunks: r.withDoc(d.Doc, r.chunk(d.Pos(), end))}
	c.Key = r.keyOf(d.Specs[0].(*ast.ValueSpec).Names[0])
	c.Names = gocell.Declared(d)
	for _, spec := range d.Specs {
		for _, name := range spec.(*ast.ValueSpec).Names {
			c.idents = append(c.idents, ident{name.Name, int(name.Pos() - d.Pos())})
		}
	}
	r.out.Decls = append(r.out.Decls, c)
}

// keyOf returns a declaration's key: its name, or blankKey.
func (r *reader) keyOf(name *ast.Ident) string {
	if name.Name == "_" {
		return r.blankKey(name.Pos())
	}
	return name.Name
}
