package pitfall

import (
	"go/ast"

	"gonbatch/submit/export/nbcell"
)

// droppable are functions that return only an error, and that did nothing if it is not nil.
var droppable = map[string]bool{
	"os.WriteFile": true, "os.Mkdir": true, "os.MkdirAll": true, "os.Rename": true, "os.Chdir": true, "os.Truncate": true, "os.Symlink": true,
	"os.Link": true, "os.Chmod": true, "ioutil.WriteFile": true, "json.Unmarshal": true, "xml.Unmarshal": true, "yaml.Unmarshal": true,
	"binary.Read": true, "binary.Write": true, "png.Encode": true, "jpeg.Encode": true, "gif.EncodeAll": true, "filepath.WalkDir": true,
	"filepath.Walk": true, "fs.WalkDir": true,
}

// droppedErrors finds statements that call a function and ignore its error.
func droppedErrors(code *nbcell.Code, body *ast.BlockStmt, errorFuncs map[string]bool) (notes []nbcell.Note) {
	ast.Inspect(body, func(n ast.Node) bool {
		statement, ok := n.(*ast.ExprStmt)
		if !ok {
			return true
		}
		name := nbcell.Callee(statement.X)
		if droppable[name] || errorFuncs[name] {
			notes = append(notes, code.Note(statement.Pos(), "the error of %s is ignored: if it fails, the cell continues", name))
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
