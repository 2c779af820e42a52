package pitfall

import (
	"go/ast"
	"slices"
	"strings"

	"gonbatch/submit/export/nbcell"
)

// fileWriters maps functions that change files to the index of the argument that names the file.
var fileWriters = map[string]int{
	"os.WriteFile": 0, "os.Create": 0, "os.Remove": 0, "os.RemoveAll": 0, "os.Rename": 1, "os.Truncate": 0, "os.Symlink": 1, "os.Link": 1,
	"ioutil.WriteFile": 0,
}

// fileUse lists a function's calls that change a file shared by all ranks, and the functions that
// it calls on every rank.
type fileUse struct {
	writes []nbcell.Note
	calls  []string
}

// OfProgram returns new notes on the files that a program changes on every rank.
func (f *Findings) OfProgram() (notes []nbcell.Note) {
	seen, open := map[string]bool{}, []string{"main"}
	for len(open) > 0 {
		name := open[0]
		open = open[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		use := f.functions[name]
		open = append(open, use.calls...)
		for _, note := range use.writes {
			if !f.noted[note] {
				f.noted[note] = true
				notes = append(notes, note)
			}
		}
	}
	return notes
}

// filesOf finds a function's calls that change files.
func filesOf(code *nbcell.Code, fn *ast.FuncDecl) (use fileUse) {
	var guarded []ast.Node // Code that only one rank runs.
	inGuarded := func(n ast.Node) bool {
		return slices.ContainsFunc(guarded, func(g ast.Node) bool { return g.Pos() <= n.Pos() && n.End() <= g.End() })
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if mentionsRank(n.Cond) {
				guarded = append(guarded, n)
			}
		case *ast.CallExpr:
			if nbcell.Method(n) == "OnMain" {
				guarded = append(guarded, n)
			}
			if inGuarded(n) {
				return true
			}
			name := nbcell.Callee(n)
			if at, writes := fileWriters[name]; writes && at < len(n.Args) && !mentionsRank(n.Args[at]) {
				use.writes = append(use.writes, code.Note(n.Pos(), "every rank of a job calls %s for the same file; guard it with if world.IsMain(), or tag the main cell %s", name, nbcell.OnceTags[0]))
			} else if name != "" && !strings.Contains(name, ".") {
				use.calls = append(use.calls, name)
			}
		}
		return true
	})
	return use
}

// mentionsRank reports whether an expression depends on the rank, or names a file that is private
// to each process.
func mentionsRank(expr ast.Expr) (found bool) {
	ast.Inspect(expr, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			name := strings.ToLower(id.Name)
			found = found || strings.Contains(name, "rank") || strings.Contains(name, "ismain") || strings.Contains(name, "temp") ||
				strings.Contains(name, "tmp") || name == "getpid" || name == "hostname"
		}
		return !found
	})
	return found
}
