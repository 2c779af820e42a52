package build

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"

	"gonbatch/submit/export"
)

// droppable are functions that return only an error, and that did nothing if it is not nil.
var droppable = map[string]bool{
	"os.WriteFile": true, "os.Mkdir": true, "os.MkdirAll": true, "os.Rename": true, "os.Chdir": true, "os.Truncate": true, "os.Symlink": true,
	"os.Link": true, "os.Chmod": true, "ioutil.WriteFile": true, "json.Unmarshal": true, "xml.Unmarshal": true, "yaml.Unmarshal": true,
	"binary.Read": true, "binary.Write": true, "png.Encode": true, "jpeg.Encode": true, "gif.EncodeAll": true, "filepath.WalkDir": true,
	"filepath.Walk": true, "fs.WalkDir": true,
}

// dropped compiles the programs to object files, as go list -export does to print their paths, and
// returns the calls in the cells whose error is ignored: a training that has failed would look like
// one that has succeeded.
func dropped(ctx context.Context, m *export.Module, tools *toolchain) (problems []Problem, err error) {
	for _, cells := range flagGroups(m) {
		if err := checkFlags(m, cells[0]); err != nil {
			return nil, err
		}
		args := slices.Concat([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{if not .DepOnly}}{{.Dir}}{{range .GoFiles}}\t{{.}}{{end}}{{end}}"}, baseFlags, withoutCoverage(cells[0].BuildFlags))
		if cells[0].Test {
			args = append(args, "-test")
		}
		for _, cell := range cells {
			args = append(args, "./"+cell.Name)
		}
		output, err := tools.run(ctx, args...)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("check %s: %w", m.Notebook, context.Cause(ctx))
		}
		if err != nil {
			return nil, flagsError(cells[0], newError(m, output, err))
		}
		var programs [][]string
		compiled := map[string]string{}
		for line := range strings.Lines(string(output)) {
			parts := strings.Split(strings.TrimRight(line, "\n"), "\t")
			if len(parts) > 3 {
				programs = append(programs, parts[2:])
			}
			if len(parts) > 2 {
				compiled[parts[0]] = parts[1]
			}
		}
		files := token.NewFileSet()
		imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })
		for _, program := range programs {
			for _, message := range droppedIn(files, imports, program[0], program[1:]) {
				if p, ok := cellProblem(m, message); ok && !slices.Contains(problems, p) {
					problems = append(problems, p)
				}
			}
		}
	}
	return problems, nil
}

// mainPath is the path of the program itself.
const mainPath = "main"

// droppedIn returns the messages about a program, in the compiler's form.
func droppedIn(fset *token.FileSet, imports types.Importer, dir string, names []string) (messages []string) {
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			continue // The compiler has accepted it.
		}
		files = append(files, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: imports, Error: func(error) {}, FakeImportC: true}
	_, _ = config.Check(mainPath, fset, files, info) // What it can't resolve, such as cgo's names, has no type.
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			var name string
			switch n := n.(type) {
			case *ast.ExprStmt:
				name = cmp.Or(failing(info, n.X), failingAlone(info, n.X))
			case *ast.GoStmt:
				name = failing(info, n.Call)
			case *ast.DeferStmt:
				name = failing(info, n.Call)
			case *ast.AssignStmt:
				last := n.Lhs[len(n.Lhs)-1]
				if name := failing(info, n.Rhs[0]); name != "" && len(n.Rhs) == 1 && blankName(last) && !blankName(n.Lhs[0]) {
					messages = append(messages, fmt.Sprintf("%s: the error of %s is ignored: if it fails, there is no result", fset.Position(last.Pos()), name))
				}
			}
			if name != "" {
				messages = append(messages, fmt.Sprintf("%s: the error of %s is ignored: if it fails, the cell continues", fset.Position(n.Pos()), name))
			}
			return true
		})
	}
	return messages
}

// blankName reports whether a result is dropped. A call whose results all are is meant so.
func blankName(x ast.Expr) bool {
	name, ok := x.(*ast.Ident)
	return ok && name.Name == "_"
}

// failing returns the name of a function of gonbatch that an expression calls, if its last result
// is an error, except Close.
func failing(info *types.Info, x ast.Expr) string {
	f := failable(info, x)
	if f == nil || !strings.HasPrefix(f.Pkg().Path(), "gonbatch/") || f.Name() == "Close" {
		return ""
	}
	if recv := f.Signature().Recv(); recv != nil {
		return types.TypeString(recv.Type(), (*types.Package).Name) + "." + f.Name()
	}
	return f.Pkg().Name() + "." + f.Name()
}

// failingAlone returns the name of a function of the notebook, or one in droppable, that an
// expression calls, if an error is its only result.
func failingAlone(info *types.Info, x ast.Expr) string {
	f := failable(info, x)
	if f == nil || f.Signature().Recv() != nil || f.Signature().Results().Len() > 1 {
		return ""
	}
	if f.Pkg().Path() == mainPath {
		return f.Name()
	}
	if name := f.Pkg().Name() + "." + f.Name(); droppable[name] {
		return name
	}
	return ""
}

// failable returns the function that an expression calls; nil if its last result is no error.
func failable(info *types.Info, x ast.Expr) *types.Func {
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok {
		return nil
	}
	f, ok := typeutil.Callee(info, call).(*types.Func)
	if !ok || f.Pkg() == nil {
		return nil
	}
	results := f.Signature().Results()
	if results.Len() == 0 || !types.Identical(results.At(results.Len()-1).Type(), types.Universe.Lookup("error").Type()) {
		return nil
	}
	return f
}
