package gocell

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// InitPrefix begins the names of functions that become func init, so that each cell can have its
// own.
const InitPrefix = "init_"

// FuncKey returns the key under which a function replaces an earlier one: its name, or Type~Method.
func FuncKey(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	return Receiver(d.Recv.List[0].Type) + "~" + d.Name.Name
}

// Receiver returns the name of a receiver's type, without pointer, parentheses and type parameters.
func Receiver(expr ast.Expr) string {
	switch t := expr.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return Receiver(t.X)
	case *ast.ParenExpr:
		return Receiver(t.X)
	case *ast.IndexExpr:
		return Receiver(t.X)
	case *ast.IndexListExpr:
		return Receiver(t.X)
	}
	return "?"
}

// ImportKey returns the key under which an import replaces an earlier one: the name that it gives
// to the package. Blank and dot imports never replace one another. name is the explicit name, or
// "".
func ImportKey(name, importPath string) string {
	switch name {
	case "":
		return AssumedName(importPath)
	case "_", ".":
		return name + "~" + importPath
	}
	return name
}

// Declared returns the keys of the names that a declaration declares, without imports and blanks.
func Declared(d ast.Decl) (keys []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		keys = []string{FuncKey(d)}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				keys = append(keys, spec.Name.Name)
			case *ast.ValueSpec:
				keys = append(keys, Named(spec.Names)...)
			}
		}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return key == "_" })
}

// Named returns the names that are not blank.
func Named(idents []*ast.Ident) (names []string) {
	for _, id := range idents {
		if id.Name != "_" {
			names = append(names, id.Name)
		}
	}
	return names
}

// versionElement matches the last element of a module path from version 2 on; versionSuffix matches
// gopkg.in's form.
var (
	versionElement = regexp.MustCompile(`^v[0-9]+$`)
	versionSuffix  = regexp.MustCompile(`\.v[0-9]+$`)
)

// IsVersion reports whether the last element of an import path names a version, not a package.
func IsVersion(element string) bool { return versionElement.MatchString(element) }

// AssumedName returns the name of a package according to its import path, if it follows the
// conventions.
func AssumedName(importPath string) string {
	base := path.Base(importPath)
	if IsVersion(base) && strings.Contains(importPath, "/") {
		base = path.Base(path.Dir(importPath))
	}
	base = versionSuffix.ReplaceAllString(base, "")
	base = strings.TrimPrefix(base, "go-")
	if i := strings.IndexFunc(base, notIdentifier); i > 0 {
		base = base[:i]
	}
	return base
}

// notIdentifier reports whether a rune can't be in an identifier.
func notIdentifier(r rune) bool {
	return r != '_' && r < 0x80 && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}
