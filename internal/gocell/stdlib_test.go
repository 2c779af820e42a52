package gocell

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/bounded"
)

// mostSymbols is the number of symbols above which stdlib.txt has only a package's path.
const mostSymbols = 1000

// TestStdlibList fails when the exports of Go's standard library differ from stdlib.txt.
func TestStdlibList(t *testing.T) {
	out, err := bounded.Output(exec.Command("go", "list", "-f", "{{.ImportPath}} {{.Dir}}", "std"))
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if parts := "/" + path + "/"; strings.Contains(parts, "/internal/") || strings.Contains(parts, "/vendor/") {
			continue
		}
		symbols := exportedIn(t, dir)
		if len(symbols) > mostSymbols {
			symbols = nil
		}
		fmt.Fprintln(&want, strings.Join(append([]string{path}, symbols...), " "))
	}
	if *update {
		if err := os.WriteFile("stdlib.txt", []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want.String(), stdlibList); diff != "" {
		t.Errorf("stdlib.txt is stale: run go generate (-go +stdlib.txt):\n%s", diff)
	}
}

// exportedIn returns the names that a package's files export, on all systems together.
func exportedIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if parsed.Name.Name == "main" {
			continue
		}
		for _, decl := range parsed.Decls {
			for _, name := range Declared(decl) {
				if ast.IsExported(name) && !strings.Contains(name, "~") {
					names[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// TestStdlibNames fails when two packages of the standard library have the same name and nothing
// decides between them.
func TestStdlibNames(t *testing.T) {
	for name, packages := range stdlib() {
		if len(packages) > 1 && usual[name] == "" {
			t.Errorf("%s is the name of %q: say in usual which is meant", name, packages)
		}
	}
}

// TestStandardPackage: the symbols decide.
func TestStandardPackage(t *testing.T) {
	tests := []struct{ name, symbols, want string }{
		{"fmt", "Println", "fmt"}, {"fmt", "", "fmt"}, {"fmt", "Printn", ""}, {"errors", "New Wrap", ""}, {"nothing", "", ""},
		{"rand", "Intn", "math/rand"}, {"rand", "IntN", "math/rand/v2"}, {"rand", "Read", "math/rand"}, {"rand", "Reader", "crypto/rand"},
		{"rand", "Reader Intn", ""}, {"template", "HTML", "html/template"}, {"template", "New", "text/template"},
		{"scanner", "ErrorList", "go/scanner"}, {"pprof", "Handler", "net/http/pprof"}, {"syscall", "Anything", "syscall"},
	}
	for _, tt := range tests {
		symbols := map[string]bool{}
		for _, symbol := range strings.Fields(tt.symbols) {
			symbols[symbol] = true
		}
		if got := StandardPackage(tt.name, symbols); got != tt.want {
			t.Errorf("%s with %q is %q, want %q", tt.name, tt.symbols, got, tt.want)
		}
	}
}
