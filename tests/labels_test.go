package tests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonbatch/internal/nbformat"
)

// drawnPlot is a plot that a function of a notebook makes.
type drawnPlot struct {
	where    string
	function *ast.FuncDecl
	// labels has what each of its fields is set to, such as X.Label.Text, and nil for each method
	// that it calls, such as HideX.
	labels map[string]ast.Expr
}

// TestPlotsHaveLabels: each plot of our notebooks has a title, and labels for its axes, unless it
// hides them or their values are words. A label of a quantity with a unit names it.
func TestPlotsHaveLabels(t *testing.T) {
	t.Parallel()
	plots := 0
	for _, path := range ourNotebooks(t) {
		functions := functionsOf(t, path)
		for _, f := range functions {
			for _, p := range plotsIn(filepath.Base(path), f) {
				plots++
				p.check(t, functions)
			}
		}
	}
	if plots < 13 {
		t.Errorf("%d plots, want at least 13: the test doesn't find them", plots)
	}
}

// ourNotebooks returns the paths of the notebooks.
func ourNotebooks(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(mnist(t)), "*.ipynb"))
	ok(t, err)
	return paths
}

// functionsOf parses the code cells of a notebook. The program of a cell is its function main.
func functionsOf(t *testing.T, path string) (all []*ast.FuncDecl) {
	t.Helper()
	notebook, err := nbformat.Read(path)
	ok(t, err)
	for i, cell := range notebook.Cells {
		if cell.Type != nbformat.Code {
			continue
		}
		declared, program, isProgram := strings.Cut("\n"+cell.Source+"\n", "\n%%\n")
		text := "package p\n" + regexp.MustCompile(`(?m)^[%!].*$`).ReplaceAllString(declared, "")
		if isProgram {
			text += "\nfunc main() {\n" + program + "\n}\n"
		}
		file, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
		if err != nil {
			t.Fatalf("%s, cell %d: %v", path, i+1, err)
		}
		for _, declaration := range file.Decls {
			if f, isFunction := declaration.(*ast.FuncDecl); isFunction {
				all = append(all, f)
			}
		}
	}
	return all
}

// plotsIn returns the plots that a function makes, with what it sets of each.
func plotsIn(notebook string, f *ast.FuncDecl) (plots []drawnPlot) {
	byName := map[string]drawnPlot{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if len(n.Rhs) != len(n.Lhs) {
					continue
				}
				name, field := cutPath(left)
				if call, isCall := n.Rhs[i].(*ast.CallExpr); isCall && pathOf(call.Fun) == "plot.New" {
					byName[name] = drawnPlot{fmt.Sprintf("%s, func %s, plot %s", notebook, f.Name, name), f, map[string]ast.Expr{}}
					plots = append(plots, byName[name])
				} else if p, isPlot := byName[name]; isPlot {
					p.labels[field] = n.Rhs[i]
				}
			}
		case *ast.CallExpr:
			name, method := cutPath(n.Fun)
			if p, isPlot := byName[name]; isPlot {
				p.labels[method] = nil
			}
		}
		return true
	})
	return plots
}

// pathOf returns a chain of names such as p.X.Label.Text, or else nothing.
func pathOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return pathOf(e.X) + "." + e.Sel.Name
	}
	return ""
}

func cutPath(e ast.Expr) (name, rest string) {
	name, rest, _ = strings.Cut(pathOf(e), ".")
	return name, rest
}

// check checks the title and the labels of a plot, and the units in them.
func (p drawnPlot) check(t *testing.T, functions []*ast.FuncDecl) {
	t.Helper()
	for _, choice := range [][]string{{"Title.Text"}, {"X.Label.Text", "HideX"}, {"Y.Label.Text", "HideY", "NominalY"}} {
		if !slices.ContainsFunc(choice, func(name string) bool { _, has := p.labels[name]; return has }) {
			t.Errorf("%s has no %s", p.where, choice[0])
		}
	}
	for _, axis := range []string{"X.Label.Text", "Y.Label.Text"} {
		for _, label := range p.texts(p.labels[axis], functions) {
			if lacksUnit(label) {
				t.Errorf("%s: its label %q names no unit", p.where, label)
			}
		}
	}
}

// texts returns the texts that an expression stands for: itself, or what the calls of the function
// pass if it is a parameter.
func (p drawnPlot) texts(e ast.Expr, functions []*ast.FuncDecl) (all []string) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return []string{text}
	case *ast.Ident:
		var names []string
		for _, field := range p.function.Type.Params.List {
			for _, name := range field.Names {
				names = append(names, name.Name)
			}
		}
		place := slices.Index(names, e.Name)
		for _, f := range functions {
			ast.Inspect(f, func(n ast.Node) bool {
				if call, isCall := n.(*ast.CallExpr); isCall && place >= 0 && pathOf(call.Fun) == p.function.Name.Name {
					all = append(all, p.texts(call.Args[place], nil)...)
				}
				return true
			})
		}
	}
	return all
}

// lacksUnit reports whether a label names a quantity that has a unit, but not the unit.
func lacksUnit(label string) bool {
	quantity := regexp.MustCompile(`\b(loss|accuracy|time|latency|throughput|size|step)\b`).MatchString(label)
	return quantity && !regexp.MustCompile(`\(.+\)| per `).MatchString(label)
}

func TestLacksUnit(t *testing.T) {
	t.Parallel()
	for label, want := range map[string]bool{
		"validation accuracy": true, "validation accuracy (%)": false, "time of a step (ms)": false, "latency": true, "images per second": false, "epoch": false, "measured y": false,
	} {
		if got := lacksUnit(label); got != want {
			t.Errorf("%q: %v", label, got)
		}
	}
}
