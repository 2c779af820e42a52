package gocell

import (
	"go/parser"
	"go/token"
	"regexp"
	"slices"
)

// undefined matches the compiler's messages about undeclared names: a name, or a type and its
// method.
var undefined = []*regexp.Regexp{
	regexp.MustCompile(`^undefined: ([\pL_][\pL\p{Nd}_]*)$`),
	regexp.MustCompile(`undefined \(type \*?([\pL_][\pL\p{Nd}_]*)(?:\[.*\])? has no field or method ([\pL_][\pL\p{Nd}_]*)\)$`),
}

// Undefined returns the key, as in Declared, of the name that a compiler message calls undefined;
// "" for other messages.
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

// Declared returns the keys of the cell's Go declarations, without imports and its main.
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

// forgets reports whether a magic makes a session forget a declaration.
func (c Call) forgets(key string) bool {
	switch c.Name() {
	case Reset:
		return len(c.Args()) == 0
	case Remove, RemoveShort:
		return slices.Contains(c.Args(), key)
	}
	return false
}

// Forgetting returns the first magic of a cell that makes a session forget a declaration, and
// whether there is one.
func Forgetting(source, key string) (Call, bool) {
	calls := Parse(source).Calls
	at := slices.IndexFunc(calls, func(c Call) bool { return c.forgets(key) })
	if at < 0 {
		return Call{}, false
	}
	return calls[at], true
}

// Session returns the keys that a session has declared and not forgotten after running these cells
// in this order. The session keeps declarations that an edit has removed from their cell.
func Session(sources []string) (keys []string) {
	for _, source := range sources {
		c := Parse(source)
		for _, call := range c.Calls {
			keys = slices.DeleteFunc(keys, call.forgets)
		}
		keys = append(keys, c.Declared()...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
