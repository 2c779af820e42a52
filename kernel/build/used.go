package build

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
)

// unusedMark is keep.Unused.
const unusedMark = "unused "

// outside matches directives with which code outside of a program's Go source can use its
// declarations.
var outside = regexp.MustCompile(`(?m)^[ \t]*//(export|go:linkname|go:wasmexport)\s`)

// markUnused marks the hashes of the variables that neither main nor an init function nor an
// initial value can use.
func markUnused(hashes map[string]string, source string) {
	if outside.MatchString(source) {
		return
	}
	c := readCode(source, initialNames(source)...)
	if c == nil {
		return
	}
	used := map[string]bool{}
	for _, name := range c.uses {
		used[name] = true
	}
	for name, hash := range hashes {
		if !used[name] {
			hashes[name] = unusedMark + hash
		}
	}
}

// initialNames returns the names in the initial values of a program's variables: these are computed
// whether the variable is used or not.
func initialNames(source string) (names []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR {
			continue
		}
		for _, spec := range group.Specs {
			for _, value := range spec.(*ast.ValueSpec).Values {
				ast.Inspect(value, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						names = append(names, id.Name)
					}
					return true
				})
			}
		}
	}
	return names
}
