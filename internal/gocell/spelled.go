package gocell

import (
	"go/ast"
	"go/parser"
	"go/token"
)

// Spelled returns the keys by which GoNB knows the cell's functions with the given FuncKey. GoNB's
// keys have the type parameters of a receiver as they are written, such as L[T]~Add.
func Spelled(source, key string) (keys []string) {
	c := Parse(source)
	if c.Program != nil {
		return nil
	}
	text := c.File().Text()
	files := token.NewFileSet()
	tree, _ := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
	if tree == nil {
		return nil
	}
	for _, decl := range tree.Decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok || FuncKey(d) != key {
			continue
		}
		if d.Recv != nil && len(d.Recv.List) > 0 {
			typ := d.Recv.List[0].Type
			if star, ok := typ.(*ast.StarExpr); ok {
				typ = star.X
			}
			key = text[files.Position(typ.Pos()).Offset:files.Position(typ.End()).Offset] + "~" + d.Name.Name
		}
		keys = append(keys, key)
	}
	return keys
}
