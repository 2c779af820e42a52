package export

import (
	_ "embed"
	"path"
	"regexp"
	"strings"
	"sync"
)

// stdlibList has the import path of every public package of Go's standard library, one a line.
//
//go:generate sh -c "go list std | grep -v -E '(^|/)(internal|vendor)(/|$)' | sort > stdlib.txt"
//go:embed stdlib.txt
var stdlibList string

// stdlib maps a package's name to the import paths of the standard library that have it.
var stdlib = sync.OnceValue(func() map[string][]string {
	byName := map[string][]string{}
	for _, importPath := range strings.Fields(stdlibList) {
		name := assumedName(importPath)
		byName[name] = append(byName[name], importPath)
	}
	return byName
})

// isStdlib tells whether an import path is one of the standard library.
func isStdlib(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".") && first != "gonbatch"
}

// versionElement is the last element of a module's path from version 2 on; versionSuffix is gopkg.in's way.
var (
	versionElement = regexp.MustCompile(`^v[0-9]+$`)
	versionSuffix  = regexp.MustCompile(`\.v[0-9]+$`)
)

// assumedName is the name that a package has by its import path, if it follows the customs.
func assumedName(importPath string) string {
	base := path.Base(importPath)
	if versionElement.MatchString(base) && strings.Contains(importPath, "/") {
		base = path.Base(path.Dir(importPath))
	}
	base = versionSuffix.ReplaceAllString(base, "")
	base = strings.TrimPrefix(base, "go-")
	if i := strings.IndexFunc(base, notIdentifier); i > 0 {
		base = base[:i]
	}
	return base
}

// notIdentifier tells whether a rune cannot stand in an identifier.
func notIdentifier(r rune) bool {
	return r != '_' && r < 0x80 && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}
