package input

import (
	"go/ast"
	"go/token"
	"slices"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export/nbcell"
)

// Flags are the flags that a notebook's cells define.
type Flags struct {
	list []Flag
	// trainer is the cell that calls AddFlags of trainer's Config.
	trainer *nbcell.Ref
}

// Add adds the flags that a cell defines. A flag replaces an earlier one of the same name. late are
// notes on flags that the cell's main defines too late.
func (f *Flags) Add(code *nbcell.Code) (late []nbcell.Note) {
	ast.Inspect(code.AST, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if found, ok := readFlag(code.Cell.Ref, call, code.Between); ok {
				f.list = appendFlags(f.list, found)
			}
			if isAddFlags(call) {
				f.trainer = &code.Cell.Ref
			}
		}
		return true
	})
	for _, d := range code.AST.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && gocell.FuncKey(fn) == "main" {
			late = append(late, lateFlags(code, fn)...)
		}
	}
	return late
}

// All returns the flags. If the programs import trainer, trainer's own flags are among them, as
// gonbatch's source tree defines them.
func (f *Flags) All(sourceDir string, importsTrainer bool) []Flag {
	if f.trainer == nil || !importsTrainer {
		return f.list
	}
	all := trainerFlags(sourceDir)
	for i := range all {
		all[i].Ref = *f.trainer
	}
	return appendFlags(all, f.list...)
}

// lateFlags notes flags that a main defines after it has parsed the arguments, which a cell's main
// does first: given such a flag, the program would end with an error.
func lateFlags(code *nbcell.Code, main *ast.FuncDecl) (late []nbcell.Note) {
	parsed := false
	ast.Inspect(main, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		_, defines := readFlag(code.Cell.Ref, call, func(token.Pos, token.Pos) string { return "" })
		if parsed && (defines || nbcell.Method(call) == "AddFlags") {
			late = append(late, code.Note(call.Pos(), "%s defines flags after the main has parsed them, so it does not know them: call it in a function such as func init_flags(), in another cell", nbcell.Callee(call)))
		}
		parsed = parsed || nbcell.Callee(call) == "flag.Parse"
		return true
	})
	return late
}

// appendFlags appends flags. A flag replaces an earlier one of the same name.
func appendFlags(list []Flag, more ...Flag) []Flag {
	for _, f := range more {
		list = slices.DeleteFunc(list, func(old Flag) bool { return old.Name == f.Name })
		list = append(list, f)
	}
	return list
}
