package gocell

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// DeclarationHashes returns the hashes of the declarations of a Go file's package-level variables,
// by name. The formatting, grouping and comments of a declaration do not count.
func DeclarationHashes(text string) map[string]string {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil // The compiler will report the error.
	}
	hashes := map[string]string{}
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR {
			continue
		}
		for _, spec := range group.Specs {
			if spec, ok := spec.(*ast.ValueSpec); ok {
				addHashes(hashes, spec, func(n ast.Node) string {
					return text[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset]
				})
			}
		}
	}
	return hashes
}

// addHashes adds the variables in a specification. Each has its own value, or its position among
// the results of a call.
func addHashes(hashes map[string]string, spec *ast.ValueSpec, source func(ast.Node) string) {
	for i, name := range spec.Names {
		sum := sha256.New()
		if spec.Type != nil {
			fmt.Fprintln(sum, words(source(spec.Type)))
		}
		switch {
		case len(spec.Values) == len(spec.Names):
			fmt.Fprintln(sum, "=", words(source(spec.Values[i])))
		case len(spec.Values) == 1:
			fmt.Fprintln(sum, i, "of", words(source(spec.Values[0])))
		}
		hashes[name.Name] = hex.EncodeToString(sum.Sum(nil))[:16]
	}
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
