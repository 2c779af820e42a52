package gocell

import (
	_ "embed"
	"maps"
	"slices"
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
		name := AssumedName(importPath)
		byName[name] = append(byName[name], importPath)
	}
	return byName
})

// IsStandard reports whether an import path is one of the standard library.
func IsStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".") && first != "gonbatch"
}

// decisive are the symbols that only one of several packages of the standard library with the same
// name has.
var decisive = map[string]map[string]string{
	"pprof": {
		"Handler": "net/http/pprof", "Index": "net/http/pprof", "Cmdline": "net/http/pprof", "Symbol": "net/http/pprof",
		"Trace": "net/http/pprof",
	},
	"rand": {
		"Reader": "crypto/rand", "Prime": "crypto/rand", "Text": "crypto/rand",
		"IntN": "math/rand/v2", "Int32": "math/rand/v2", "Int32N": "math/rand/v2", "Int64": "math/rand/v2", "Int64N": "math/rand/v2",
		"N": "math/rand/v2", "UintN": "math/rand/v2", "Uint32N": "math/rand/v2", "Uint64N": "math/rand/v2",
		"PCG": "math/rand/v2", "NewPCG": "math/rand/v2", "ChaCha8": "math/rand/v2", "NewChaCha8": "math/rand/v2",
	},
	"scanner": {"ErrorHandler": "go/scanner", "ErrorList": "go/scanner", "PrintError": "go/scanner", "Mode": "go/scanner"},
	"template": {
		"CSS": "html/template", "HTML": "html/template", "HTMLAttr": "html/template", "JS": "html/template",
		"JSStr": "html/template", "Srcset": "html/template", "URL": "html/template",
	},
}

// usual is the package that is meant where no symbol decides.
var usual = map[string]string{"pprof": "runtime/pprof", "rand": "math/rand", "scanner": "text/scanner", "template": "text/template"}

// StandardPackage is the import path of the standard library's package that a cell means by a name
// and the symbols that it takes from it; "" if there is none. (goimports, which GoNB runs, chooses
// at random where several packages have them all.)
func StandardPackage(name string, symbols map[string]bool) string {
	paths := stdlib()[name]
	if len(paths) == 0 {
		return ""
	}
	for _, symbol := range slices.Sorted(maps.Keys(symbols)) {
		if importPath := decisive[name][symbol]; importPath != "" {
			return importPath
		}
	}
	if importPath := usual[name]; importPath != "" {
		return importPath
	}
	return paths[0]
}
