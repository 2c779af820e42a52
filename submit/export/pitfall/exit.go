package pitfall

import (
	"go/ast"

	"gonbatch/submit/export/nbcell"
)

// exits are the functions that end the whole program.
var exits = map[string]bool{"os.Exit": true, "log.Fatal": true, "log.Fatalf": true, "log.Fatalln": true, "syscall.Exit": true}

// exitsIn notes the calls in a function that end the whole program.
func exitsIn(code *nbcell.Code, fn *ast.FuncDecl) (notes []nbcell.Note) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if name := nbcell.Callee(n); exits[name] {
			notes = append(notes, code.Note(n.Pos(), "%s in %s ends the program: deferred calls, such as world.Close, do not run", name, fn.Name.Name))
		}
		return true
	})
	return notes
}
