package export

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"strconv"
	"strings"

	"gonbatch/internal/gocell"
)

// headerLines is the number of lines in gocell.Header: line n of the cell is line n+headerLines of
// the parsed file.
const headerLines = 1

// cellDecls are the declarations of one cell.
type cellDecls struct {
	imports []*importDecl
	decls   []*decl
	main    *decl
	flags   []Flag
	// addsFlags is set if the cell calls AddFlags of trainer's Config.
	addsFlags bool
	notes     []Note
	// findings are more notes; unlike notes, they also apply to a cell with a main.
	findings []Note
	// end is set if the main can never succeed.
	end *deadEnd
}

// cellParser turns the Go code of one cell into declarations.
type cellParser struct {
	cell *cellInfo
	src  string
	fset *token.FileSet
	file *token.File
	// embeds are the //go:embed lines of variables.
	embeds map[*ast.ValueSpec][]*ast.Comment
	out    cellDecls
}

// parseDecls parses a cell's Go code and adds its findings to found.
func parseDecls(cell *cellInfo, goFile gocell.File, found *findings) (*cellDecls, error) {
	p := &cellParser{cell: cell, fset: token.NewFileSet(), src: goFile.Text(), embeds: map[*ast.ValueSpec][]*ast.Comment{}}
	file, err := parser.ParseFile(p.fset, "", p.src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, p.syntaxError(err, goFile.Lines)
	}
	p.file = p.fset.File(file.Pos())
	if err := p.embedsIn(file); err != nil {
		return nil, err
	}
	p.flagsIn(file)
	p.out.findings = found.add(p, file)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if err := p.function(d); err != nil {
				return nil, err
			}
		case *ast.GenDecl:
			p.general(d)
		}
	}
	return &p.out, nil
}

// syntaxError returns an error for the first syntax error, with its line in the cell.
func (p *cellParser) syntaxError(err error, lines []string) error {
	var list scanner.ErrorList
	if !errors.As(err, &list) || len(list) == 0 {
		return p.cell.errorf(0, "%v", err)
	}
	first := list[0]
	line := min(max(first.Pos.Line-headerLines, 1), len(lines))
	e := p.cell.errorf(line, "does not parse as Go: %s%s", first.Msg, gocell.Remedy(first.Msg, lines[line-1]))
	e.Col = first.Pos.Column
	return e
}

// line returns a position's line in the cell.
func (p *cellParser) line(pos token.Pos) int {
	return p.file.PositionFor(pos, false).Line - headerLines
}

// chunk returns the text between two positions.
func (p *cellParser) chunk(from, to token.Pos) chunk {
	return chunk{text: p.src[p.file.Offset(from):p.file.Offset(to)], line: p.line(from)}
}

// withDoc returns the chunks of a declaration and the comment above it.
func (p *cellParser) withDoc(doc *ast.CommentGroup, body ...chunk) []chunk {
	if doc == nil {
		return body
	}
	c := p.chunk(doc.Pos(), doc.End())
	c.text += "\n"
	return append([]chunk{c}, body...)
}

// function adds a function, a method, or the main.
func (p *cellParser) function(d *ast.FuncDecl) error {
	name := d.Name.Name
	f := &decl{key: gocell.FuncKey(d), kind: token.FUNC, cell: p.cell, names: gocell.Declared(d)}
	f.chunks = p.withDoc(d.Doc, p.chunk(d.Pos(), d.End()))
	switch {
	case f.key == "main" && p.out.main != nil:
		return p.cell.errorf(p.line(d.Pos()), "%v", gocell.ErrTwoMains)
	case f.key == "main":
		p.out.main, p.out.end = f, p.findDeadEnd(d.Body)
		p.noteLateFlags(d)
		return nil
	case f.key == "_":
		f.key = p.blankKey(d.Pos())
	case d.Recv == nil && strings.HasPrefix(name, gocell.InitPrefix):
		f.idents = []ident{{name, int(d.Name.Pos() - d.Pos())}}
		f.rename(name, "init")
	}
	p.noteExits(d)
	p.out.decls = append(p.out.decls, f)
	return nil
}

// blankKey returns the key of a declaration without a name.
func (p *cellParser) blankKey(pos token.Pos) string {
	return fmt.Sprintf("_~%06d~%06d", p.cell.Number, p.file.Offset(pos))
}

// general adds the imports, types, consts or vars of a declaration.
func (p *cellParser) general(d *ast.GenDecl) {
	if d.Tok == token.CONST {
		p.constBlock(d)
		return
	}
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.ImportSpec:
			p.importSpec(d, spec)
		case *ast.TypeSpec:
			t := &decl{key: p.keyOf(spec.Name), kind: token.TYPE, cell: p.cell, names: gocell.Named([]*ast.Ident{spec.Name})}
			t.chunks = p.spec(d, spec, spec.Doc, spec.Comment)
			p.out.decls = append(p.out.decls, t)
		case *ast.ValueSpec:
			p.varSpec(d, spec)
		}
	}
}

// importSpec adds an import.
func (p *cellParser) importSpec(d *ast.GenDecl, spec *ast.ImportSpec) {
	path, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return // The parser has refused it already.
	}
	imp := &importDecl{path: path, cell: p.cell, line: p.line(spec.Path.Pos())}
	if spec.Name != nil {
		imp.name = spec.Name.Name
	}
	imp.doc = p.withDoc(docOf(d, spec.Doc))
	p.out.imports = append(p.out.imports, imp)
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
func (p *cellParser) spec(d *ast.GenDecl, spec ast.Spec, doc, comment *ast.CommentGroup) []chunk {
	end := spec.End()
	if comment != nil {
		end = comment.End()
	}
	doc = docOf(d, doc)
	if !d.Lparen.IsValid() {
		return p.withDoc(doc, p.chunk(d.Pos(), end))
	}
	return p.withDoc(doc, chunk{text: d.Tok.String() + " "}, p.chunk(spec.Pos(), end))
}

// varSpec adds the variables of a spec: one by one, or as a tuple if one call gives them all their
// values.
func (p *cellParser) varSpec(d *ast.GenDecl, spec *ast.ValueSpec) {
	if len(spec.Names) == 1 || len(spec.Values) == 1 {
		v := &decl{key: p.keyOf(spec.Names[0]), kind: token.VAR, cell: p.cell, names: gocell.Named(spec.Names)}
		v.chunks = append(p.embedLines(spec, docOf(d, spec.Doc)), p.spec(d, spec, spec.Doc, spec.Comment)...)
		p.out.decls = append(p.out.decls, v)
		return
	}
	for i, name := range spec.Names {
		v := &decl{key: p.keyOf(name), kind: token.VAR, cell: p.cell, names: gocell.Named([]*ast.Ident{name})}
		v.chunks = []chunk{{text: "var "}, p.chunk(name.Pos(), name.End())}
		if spec.Type != nil {
			v.chunks = append(v.chunks, chunk{text: " "}, p.chunk(spec.Type.Pos(), spec.Type.End()))
		}
		if i < len(spec.Values) {
			v.chunks = append(v.chunks, chunk{text: " = "}, p.chunk(spec.Values[i].Pos(), spec.Values[i].End()))
		}
		if i == 0 {
			v.chunks = p.withDoc(docOf(d, spec.Doc), v.chunks...)
		}
		p.out.decls = append(p.out.decls, v)
	}
}

// constBlock adds a const declaration as a whole, because its lines depend on one another.
func (p *cellParser) constBlock(d *ast.GenDecl) {
	if len(d.Specs) == 0 {
		return
	}
	end := d.End()
	if comment := d.Specs[0].(*ast.ValueSpec).Comment; !d.Lparen.IsValid() && comment != nil {
		end = comment.End()
	}
	c := &decl{kind: token.CONST, cell: p.cell, chunks: p.withDoc(d.Doc, p.chunk(d.Pos(), end))}
	c.key = p.keyOf(d.Specs[0].(*ast.ValueSpec).Names[0])
	c.names = gocell.Declared(d)
	for _, spec := range d.Specs {
		for _, name := range spec.(*ast.ValueSpec).Names {
			c.idents = append(c.idents, ident{name.Name, int(name.Pos() - d.Pos())})
		}
	}
	p.out.decls = append(p.out.decls, c)
}

// keyOf returns a declaration's key: its name, or blankKey.
func (p *cellParser) keyOf(name *ast.Ident) string {
	if name.Name == "_" {
		return p.blankKey(name.Pos())
	}
	return name.Name
}
