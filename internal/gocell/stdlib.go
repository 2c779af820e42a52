package gocell

import (
	_ "embed"
	"strings"
	"sync"
)

// stdlibList has a line for every public package of Go's standard library: its import path, and
// what it exports. Those that export too much for a list have their path only.
//
//go:generate go test -run TestStdlibList -update
//go:embed stdlib.txt
var stdlibList string

// stdlibPackage is a package of the standard library.
type stdlibPackage struct {
	path string
	// symbols are what it exports, each between two spaces; "" is unknown.
	symbols string
}

// stdlib maps a package's name to the packages of the standard library that have it.
var stdlib = sync.OnceValue(func() map[string][]stdlibPackage {
	byName := map[string][]stdlibPackage{}
	for line := range strings.Lines(stdlibList) {
		importPath, symbols, known := strings.Cut(strings.TrimSpace(line), " ")
		if known {
			symbols = " " + symbols + " "
		}
		name := AssumedName(importPath)
		byName[name] = append(byName[name], stdlibPackage{importPath, symbols})
	}
	return byName
})

// exports reports whether the package has all symbols.
func (p stdlibPackage) exports(symbols map[string]bool) bool {
	for symbol := range symbols {
		if p.symbols != "" && !strings.Contains(p.symbols, " "+symbol+" ") {
			return false
		}
	}
	return true
}

// IsStandard reports whether an import path is one of the standard library.
func IsStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".") && first != "gonbatch"
}

// usual is the package that is meant where several have a name and the symbols.
var usual = map[string]string{"pprof": "runtime/pprof", "rand": "math/rand", "scanner": "text/scanner", "template": "text/template"}

// StandardPackage is the import path of the standard library's package that a cell means by a name
// and the symbols that it takes from it; "" if there is none. (goimports, which GoNB runs, chooses
// at random where several packages have them all.)
func StandardPackage(name string, symbols map[string]bool) (importPath string) {
	for _, p := range stdlib()[name] {
		switch {
		case !p.exports(symbols):
		case p.path == usual[name]:
			return p.path
		case importPath == "":
			importPath = p.path
		}
	}
	return importPath
}
