package gocell

import (
	"go/parser"
	"go/token"
	"regexp"
	"slices"
)

// undefined are the compiler's messages about names that are not declared: a name, or a type and
// its method.
var undefined = []*regexp.Regexp{
	regexp.MustCompile(`^undefined: ([\pL_][\pL\p{Nd}_]*)$`),
	regexp.MustCompile(`undefined \(type \*?([\pL_][\pL\p{Nd}_]*)(?:\[.*\])? has no field or method ([\pL_][\pL\p{Nd}_]*)\)$`),
}

// Undefined is the key of what a message of the compiler calls undefined, as Declared gives it; ""
// for other messages.
func Undefined(message string) (key string) {
	for _, pattern := range undefined {
		switch found := pattern.FindStringSubmatch(message); len(found) {
		case 2:
			return found[1]
		case 3:
			return found[1] + "~" + found[2]
		}
	}
	return ""
}

// Declares reports whether the Go of a cell declares a key.
func Declares(source, key string) bool { return slices.Contains(DeclaredIn(source), key) }

// DeclaredIn are the keys of what the Go of a cell declares, as far as it can be parsed.
func DeclaredIn(source string) (keys []string) {
	tree, _ := parser.ParseFile(token.NewFileSet(), "", Parse(source).File().Text(), parser.SkipObjectResolution)
	if tree == nil {
		return nil
	}
	for _, d := range tree.Decls {
		keys = append(keys, Declared(d)...)
	}
	return keys
}
