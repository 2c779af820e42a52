package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/tests/jupyter"
)

// fuzzTime is the number of inputs for each target: enough to notice that one is broken. It isn't a
// duration, because Go 1.26 sometimes fails with "context deadline exceeded" at its end
// (https://go.dev/issue/75804). Inputs that long runs have found are in testdata/fuzz, which every
// "go test" runs.
const fuzzTime = "1000x"

// TestFuzz briefly fuzzes everything that reads notebooks and composes programs from them.
func TestFuzz(t *testing.T) {
	root, err := jupyter.Root()
	if err != nil {
		t.Fatal(err)
	}
	targets := fuzzTargets(t, filepath.Join(root, "submit"))
	if len(targets) < 5 {
		t.Fatalf("%d targets below submit, want those of the reader, of cells, of shell lines and of notebooks: %v", len(targets), targets)
	}
	for _, target := range targets {
		t.Run(target.name, func(t *testing.T) {
			out, err := command(target.folder, "go", "test", "-run=^$", "-fuzz=^"+target.name+"$", "-fuzztime="+fuzzTime, "-parallel=2", ".").CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

type fuzzTarget struct{ folder, name string }

// fuzzTargets finds the fuzz targets below a folder.
func fuzzTargets(t *testing.T, below string) []fuzzTarget {
	t.Helper()
	var targets []fuzzTarget
	err := filepath.WalkDir(below, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Fuzz") {
				targets = append(targets, fuzzTarget{filepath.Dir(path), f.Name.Name})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return targets
}
