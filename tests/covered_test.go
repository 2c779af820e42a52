package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// testFunction is what a function of this package's tests mentions.
type testFunction struct {
	names map[string]bool // Of what it calls or refers to.
	texts map[string]bool
}

// onNotebook reports whether a function uses a notebook.
func (f testFunction) onNotebook(name string) bool {
	return f.texts[name] || name == "mnist.ipynb" && f.names["mnist"]
}

// TestNotebooksAreCovered: each notebook is executed by a Jupyter client, by `submit --local`, and
// on the cluster.
func TestNotebooksAreCovered(t *testing.T) {
	t.Parallel()
	functions := testFunctions(t)
	onCluster := functions["TestSlurm"].names
	for _, path := range ourNotebooks(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			covered := map[string]bool{}
			for name, f := range functions {
				if !f.onNotebook(filepath.Base(path)) || !strings.HasPrefix(name, "Test") && !onCluster[name] {
					continue
				}
				covered["a Jupyter client"] = covered["a Jupyter client"] || f.names["inJupyter"] || f.names["execute"]
				covered["submit --local"] = covered["submit --local"] || f.texts["--local"]
				covered["the cluster, in TestSlurm"] = covered["the cluster, in TestSlurm"] || onCluster[name]
			}
			for _, way := range []string{"a Jupyter client", "submit --local", "the cluster, in TestSlurm"} {
				if !covered[way] {
					t.Errorf("no test runs it by %s", way)
				}
			}
		})
	}
}

// testFunctions parses this package's tests, and returns its functions by name.
func testFunctions(t *testing.T) map[string]testFunction {
	t.Helper()
	paths, err := filepath.Glob("*_test.go")
	ok(t, err)
	all := map[string]testFunction{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		ok(t, err)
		for _, declaration := range file.Decls {
			if f, isFunction := declaration.(*ast.FuncDecl); isFunction && f.Recv == nil {
				all[f.Name.Name] = mentions(f)
			}
		}
	}
	return all
}

func mentions(f *ast.FuncDecl) testFunction {
	found := testFunction{map[string]bool{}, map[string]bool{}}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			found.names[n.Name] = true
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil {
				found.texts[text] = true
			}
		}
		return true
	})
	return found
}
