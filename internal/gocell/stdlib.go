package gocell

import (
	_ "embed"
	"strings"
	"sync"
)

// stdlibList has a line for every public package of Go's standard library: its import path and its
// exported names. Packages with too many names have only their path.
//
//go:generate go test -run TestStdlibList -update
//go:embed stdlib.txt
var stdlibList string

// stdlibPackage is a package of the standard library.
type stdlibPackage struct {
	path string
	// symbols are its exported names, each between two spaces; "" if they are not known.
	symbols string
}

// stdlib maps a name to the packages of the standard library that have it.
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

// IsStandard reports whether an import path is in the standard library.
func IsStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".") && first != "gonbatch"
}

// usual maps a name to the package that is meant if several have that name and the symbols.
var usual = map[string]string{"pprof": "runtime/pprof", "rand": "math/rand", "scanner": "text/scanner", "template": "text/template"}

// StandardPackage returns the import path of the standard library's package that a cell means by a
// name and the symbols that it uses from it; "" if there is none. (goimports, which GoNB runs,
// chooses at random if several packages have all the symbols.)
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
