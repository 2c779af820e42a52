package input

import (
	"go/ast"
	"strconv"
	"strings"
	"testing"

	"gonbatch/internal/gocell"
	"gonbatch/internal/nbformat"
	"gonbatch/submit/export/nbcell"
)

// cellOf returns a cell of Go code.
func cellOf(source string) *nbcell.Cell {
	return nbcell.Describe(&nbformat.Notebook{Path: "n.ipynb", Cells: []*nbformat.Cell{{Type: nbformat.Code, Source: source, Number: 1}}})[0]
}

// parse parses a cell's code.
func parse(t *testing.T, file gocell.File) *nbcell.Code {
	t.Helper()
	code, err := cellOf(strings.Join(file.Lines, "\n")).Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// FuzzParameter: any text becomes the value of a string parameter and nothing else; for a number it
// is refused or becomes one literal.
func FuzzParameter(f *testing.F) {
	for _, value := range []string{"3", "-1e-3", "\"; os.Exit(1) //", "`", "\n", "\x00é", "0x1p-2", "1_000", "'a'"} {
		f.Add(value)
	}
	const source = "var name = \"x\"\nvar n, rate = 1, 0.5 // note\nvar size uint8\nconst c = 1"
	f.Fuzz(func(t *testing.T, value string) {
		for _, name := range []string{"name", "n", "rate", "size", "c"} {
			file := gocell.Parse(source).File()
			before := len(parse(t, file).AST.Decls)
			params := Parameters{Values: map[string]string{name: value}}
			err := params.Apply(cellOf(source), &file)
			if err != nil {
				if name == "name" {
					t.Errorf("a text is refused: %v", err)
				}
				continue
			}
			after := parse(t, file)
			if len(file.Lines) != 4 || len(after.AST.Decls) != before {
				t.Fatalf("-p %s=%q gives other declarations:\n%s", name, value, file.Text())
			}
			if text := newEditor(after).describe(after.AST.Decls[0].(*ast.GenDecl).Specs[0].(*ast.ValueSpec), 0).Default; name == "name" {
				if got, err := strconv.Unquote(text); err == nil && got != value && strings.Join(strings.Fields(value), " ") == value {
					t.Errorf("-p name=%q gives %q", value, got)
				}
			}
		}
	})
}
