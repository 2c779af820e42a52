package input

import (
	"go/ast"
	"slices"

	"gonbatch/submit/export/nbcell"
)

// Flags are the flags that a notebook's cells define.
type Flags struct {
	list []Flag
	// trainer is the cell that calls AddFlags of trainer's Config.
	trainer *nbcell.Ref
}

// Add adds the flags that a cell defines. A flag replaces an earlier one of the same name.
func (f *Flags) Add(code *nbcell.Code) {
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

// appendFlags appends flags. A flag replaces an earlier one of the same name.
func appendFlags(list []Flag, more ...Flag) []Flag {
	for _, f := range more {
		list = slices.DeleteFunc(list, func(old Flag) bool { return old.Name == f.Name })
		list = append(list, f)
	}
	return list
}
