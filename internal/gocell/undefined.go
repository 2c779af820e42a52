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
func Declares(source, key string) bool { return slices.Contains(Parse(source).Declared(), key) }

// Declared are the keys of what the cell's Go declares, without imports and its main.
func (c Cell) Declared() (keys []string) {
	if c.Program != nil {
		return nil
	}
	tree, _ := parser.ParseFile(token.NewFileSet(), "", c.File().Text(), parser.SkipObjectResolution)
	if tree == nil {
		return nil
	}
	for _, d := range tree.Decls {
		keys = append(keys, Declared(d)...)
	}
	return slices.DeleteFunc(keys, func(key string) bool { return key == "main" })
}

// Session is what a session that ran these cells, in this order, has declared and not forgotten: an
// edited cell no longer has what the session keeps of it.
func Session(sources []string) (keys []string) {
	for _, source := range sources {
		c := Parse(source)
		for _, call := range c.Calls {
			switch name := call.Name(); {
			case name == Reset && len(call.Args()) == 0:
				keys = nil
			case name == Remove || name == RemoveShort:
				keys = slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(call.Args(), key) })
			}
		}
		keys = append(keys, c.Declared()...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
