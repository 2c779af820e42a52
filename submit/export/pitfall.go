package export

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// fileWriters maps functions that change files to the index of the argument that names the file.
var fileWriters = map[string]int{
	"os.WriteFile": 0, "os.Create": 0, "os.Remove": 0, "os.RemoveAll": 0, "os.Rename": 1, "os.Truncate": 0, "os.Symlink": 1, "os.Link": 1,
	"ioutil.WriteFile": 0,
}

// droppable are functions that return only an error, and that did nothing if it is not nil.
var droppable = map[string]bool{
	"os.WriteFile": true, "os.Mkdir": true, "os.MkdirAll": true, "os.Rename": true, "os.Chdir": true, "os.Truncate": true, "os.Symlink": true,
	"os.Link": true, "os.Chmod": true, "ioutil.WriteFile": true, "json.Unmarshal": true, "xml.Unmarshal": true, "yaml.Unmarshal": true,
	"binary.Read": true, "binary.Write": true, "png.Encode": true, "jpeg.Encode": true, "gif.EncodeAll": true, "filepath.WalkDir": true,
	"filepath.Walk": true, "fs.WalkDir": true,
}

// findings collects pitfalls: what the cells' functions may do in a job but not in a notebook.
type findings struct {
	// onlyError are the functions that return only an error.
	onlyError map[string]bool
	// functions describes each function's use of files.
	functions map[string]fileUse
	// noted are the notes already returned for earlier programs.
	noted map[Note]bool
}

// fileUse lists a function's calls that change a file shared by all ranks, and the functions that
// it calls on every rank.
type fileUse struct {
	writes []Note
	calls  []string
}

func newFindings() findings {
	return findings{onlyError: map[string]bool{}, functions: map[string]fileUse{}, noted: map[Note]bool{}}
}

// add reads a parsed cell and returns notes on the errors that it ignores.
func (f *findings) add(p *cellParser, file *ast.File) (notes []Note) {
	var bodies []*ast.FuncDecl
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			bodies = append(bodies, fn)
			if fn.Recv == nil {
				f.onlyError[fn.Name.Name] = givesOnlyError(fn)
			}
		}
	}
	for _, fn := range bodies {
		notes = append(notes, p.droppedErrors(fn.Body, f.onlyError)...)
		if fn.Recv == nil {
			f.functions[fn.Name.Name] = p.fileUse(fn)
		}
	}
	return notes
}

// ofProgram returns new notes on the files that a program changes on every rank.
func (f *findings) ofProgram() (notes []Note) {
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

// note returns a note about a place in the cell.
func (p *cellParser) note(pos token.Pos, format string, args ...any) Note {
	return Note{p.cell.ref, p.line(pos), fmt.Sprintf(format, args...)}
}

// droppedErrors finds statements that call a function and ignore its error.
func (p *cellParser) droppedErrors(body *ast.BlockStmt, errorFuncs map[string]bool) (notes []Note) {
	ast.Inspect(body, func(n ast.Node) bool {
		statement, ok := n.(*ast.ExprStmt)
		if !ok {
			return true
		}
		name := calledName(statement.X)
		if droppable[name] || errorFuncs[name] {
			notes = append(notes, p.note(statement.Pos(), "the error of %s is ignored: if it fails, the cell continues", name))
		}
		return true
	})
	return notes
}

// givesOnlyError reports whether a function's only result is an error.
func givesOnlyError(fn *ast.FuncDecl) bool {
	results := fn.Type.Results
	if fn.Recv != nil || results == nil || results.NumFields() != 1 {
		return false
	}
	typ, ok := results.List[0].Type.(*ast.Ident)
	return ok && typ.Name == "error"
}

// fileUse finds a function's calls that change files.
func (p *cellParser) fileUse(fn *ast.FuncDecl) (use fileUse) {
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
			if calledSelector(n) == "OnMain" {
				guarded = append(guarded, n)
			}
			if inGuarded(n) {
				return true
			}
			name := calledName(n)
			if at, writes := fileWriters[name]; writes && at < len(n.Args) && !mentionsRank(n.Args[at]) {
				use.writes = append(use.writes, p.note(n.Pos(), "every rank of a job calls %s for the same file; guard it with if world.IsMain(), or tag the main cell %s", name, OnceTags[0]))
			} else if name != "" && !strings.Contains(name, ".") {
				use.calls = append(use.calls, name)
			}
		}
		return true
	})
	return use
}

// calledSelector returns the name after the dot of the called function.
func calledSelector(call *ast.CallExpr) string {
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
		return sel.Sel.Name
	}
	return ""
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
