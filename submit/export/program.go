package export

import (
	"fmt"
	"go/format"
	"strings"
)

// renderProgram gives the main.go of a step: the declarations as of its cell, in GoNB's order, and its main.
func renderProgram(step *Step, cell *cellInfo, decls *declSet, main *decl, names *packageNames) ([]byte, []importLine, error) {
	var body strings.Builder
	for _, d := range append(decls.sorted(), main) {
		text, err := renderDecl(d.cell, d.text())
		if err != nil {
			return nil, nil, err
		}
		body.WriteString("\n")
		body.WriteString(text)
	}
	imports, err := chooseImports(decls.sortedImports(), body.String(), names)
	if err != nil {
		return nil, nil, cell.errorf(0, "the cells do not fit together: %v", err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, generatedLine+"%s; DO NOT EDIT.\n\n", cell.ref.Notebook)
	fmt.Fprintf(&out, "// Command %s is cell %d of %s.\npackage main\n", step.Name, cell.Number, cell.ref.Notebook)
	out.WriteString(renderImports(imports))
	head, err := format.Source([]byte(out.String()))
	if err != nil {
		return nil, nil, cell.errorf(0, "the imports cannot be formatted: %v", err)
	}
	return append(head, body.String()...), imports, nil
}

// renderImports gives the import declarations: the standard library's, all others, and cgo's with its preamble.
func renderImports(imports []importLine) string {
	var std, other, cgo strings.Builder
	for _, imp := range imports {
		switch {
		case imp.path == "C":
			cgo.WriteString("\n" + imp.doc + "import \"C\"\n")
		case isStdlib(imp.path):
			std.WriteString(imp.String())
		default:
			other.WriteString(imp.String())
		}
	}
	if std.Len()+other.Len() == 0 {
		return cgo.String()
	}
	gap := ""
	if std.Len() > 0 && other.Len() > 0 {
		gap = "\n"
	}
	return "\nimport (\n" + std.String() + gap + other.String() + ")\n" + cgo.String()
}

// String is the import's line in an import block.
func (l importLine) String() string {
	if l.name == "" {
		return fmt.Sprintf("\t%q\n", l.path)
	}
	return fmt.Sprintf("\t%s %q\n", l.name, l.path)
}
