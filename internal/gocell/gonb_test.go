package gocell

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
)

// TestGoNB: the table has exactly the magics in GoNB's source, and passes no others to GoNB.
func TestGoNB(t *testing.T) {
	out, err := bounded.Output(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/janpfeifer/gonb"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "internal", "specialcmd")
	known := map[string]bool{}
	for _, name := range append(magicsIn(t, dir, "specialcmd.go", "%"), magicsIn(t, dir, "cellmagic.go", "")...) {
		known[name] = true
		if Lookup(name) == nil {
			t.Errorf("GoNB has %s, and the table lacks it", name)
		}
	}
	for _, m := range Magics {
		if m.Runner == GoNB && !known[m.Name] {
			t.Errorf("GoNB does not have %s", m.Name)
		}
	}
}

// magicsIn returns the strings with a prefix in a file of GoNB's: those in the switch over a
// magic's name, or in a set.
func magicsIn(t *testing.T, dir, file, prefix string) (found []string) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	add := func(list []ast.Expr) {
		for _, x := range list {
			if literal, ok := x.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				name, _ := strconv.Unquote(literal.Value)
				found = append(found, prefix+name)
			}
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause:
			if prefix != "" {
				add(n.List)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "SetWithValues" {
				add(n.Args)
			}
		}
		return true
	})
	return found
}
