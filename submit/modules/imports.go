package modules

import (
	"bytes"
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"slices"

	"gonbatch/internal/gocell"
)

// findImports runs goimports on the programs that lack imports. It reports whether it found any.
func (r *resolver) findImports(ctx context.Context) (found bool) {
	for _, cell := range r.module.Programs() {
		open := r.module.Open[cell.Name]
		if len(open) == 0 {
			continue
		}
		source := r.module.Files[cell.Source()]
		for _, name := range open { // goimports does not replace an import that lacks a symbol.
			if path := gocell.StandardPackage(name, nil); path != "" {
				source = bytes.Replace(source, fmt.Appendf(nil, "\t%q\n", path), nil, 1)
			}
		}
		fixed, err := r.completed(ctx, r.file(cell.Source()), source)
		if err != nil {
			continue // The compiler says more, and names the cell.
		}
		had := importsIn(source) // The same package may be among them under another name.
		for name, path := range importsIn(fixed) {
			if had[name] == "" && slices.Contains(open, name) {
				addImport(r.imports, cell.Name, name, path)
				found = true
			}
		}
	}
	return found
}

// importsIn returns the paths of a program's imports, by name. goimports writes a name that differs
// from the path's.
func importsIn(source []byte) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ImportsOnly)
	if err != nil {
		return nil
	}
	return gocell.ImportNames(file)
}
