package gocell

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// Declaration describes the declaration of a package-level variable.
type Declaration struct {
	// hash is the hash of its text. The formatting, grouping and comments do not count.
	hash string
	// Imports are the paths of the packages that its initial value names, sorted.
	Imports []string
}

// CodeAt is where the part of Hash begins that depends on state.
const CodeAt = 8

// Hash returns a hash of the declaration, and of what identifies the code and data that its initial
// value comes from. It has 16 bytes; those before CodeAt depend only on the declaration.
func (d Declaration) Hash(state []string) string {
	if d.hash == "" || len(state) == 0 {
		return d.hash
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %q", d.hash, state))
	return d.hash[:CodeAt] + hex.EncodeToString(sum[:])[CodeAt:len(d.hash)]
}

// Declarations returns the declarations of a Go file's package-level variables, by name.
func Declarations(text string) map[string]Declaration {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil // The compiler will report the error.
	}
	all := map[string]Declaration{}
	f := declarationFile{imports: ImportNames(file), source: func(n ast.Node) string {
		return text[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset]
	}}
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR {
			continue
		}
		for _, spec := range group.Specs {
			if spec, ok := spec.(*ast.ValueSpec); ok {
				f.add(all, spec)
			}
		}
	}
	return all
}

// declarationFile is a Go file with declarations.
type declarationFile struct {
	// imports are the paths of its imports by name, source returns a node's text.
	imports map[string]string
	source  func(ast.Node) string
}

// add adds the variables in a specification. Each has its own value, or its position among the
// results of a call.
func (f declarationFile) add(all map[string]Declaration, spec *ast.ValueSpec) {
	for i, name := range spec.Names {
		sum, d := sha256.New(), Declaration{}
		if spec.Type != nil {
			fmt.Fprintln(sum, words(f.source(spec.Type)))
		}
		switch {
		case len(spec.Values) == len(spec.Names):
			fmt.Fprintln(sum, "=", words(f.source(spec.Values[i])))
			d.Imports = f.importsOf(spec.Values[i])
		case len(spec.Values) == 1:
			fmt.Fprintln(sum, i, "of", words(f.source(spec.Values[0])))
			d.Imports = f.importsOf(spec.Values[0])
		}
		d.hash = hex.EncodeToString(sum.Sum(nil))[:16]
		all[name.Name] = d
	}
}

// importsOf returns the paths of the packages that an expression names.
func (f declarationFile) importsOf(value ast.Expr) (paths []string) {
	ast.Inspect(value, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && f.imports[x.Name] != "" {
				paths = append(paths, f.imports[x.Name])
			}
		}
		return true
	})
	slices.Sort(paths)
	return slices.Compact(paths)
}

// ImportNames returns the paths of a file's imports by the names that they have in it.
func ImportNames(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value) // The parser has done so without an error.
		name := AssumedName(path)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = path
	}
	return names
}

// words returns the tokens of an expression, except those that gofmt adds or removes.
func words(expression string) string {
	var b strings.Builder
	for t := range Tokens(expression, 0) {
		switch t.Kind {
		case token.SEMICOLON, token.COMMA:
		default:
			fmt.Fprintf(&b, "%s %q ", t.Kind, t.Text)
		}
	}
	return b.String()
}
