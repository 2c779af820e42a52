package report_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/tests/page"
)

// TestPage holds docs/json.md to the types that --json prints.
func TestPage(t *testing.T) {
	var text strings.Builder
	for _, name := range []string{
		"submit/report/run.go", "submit/report/notebook.go", "submit/report/config.go", "internal/rundir/step.go",
	} {
		describeTypes(t, &text, filepath.Join(page.Root(t), name))
	}
	page.Section(t, "docs/json.md", "shapes", text.String())
}

// describeTypes writes the structs of a file that JSON is made of, as the source has them.
func describeTypes(t *testing.T, w *strings.Builder, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		types, ok := decl.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		begin := types.Pos()
		if types.Doc != nil {
			begin = types.Doc.Pos()
		}
		source := text[files.Position(begin).Offset:files.Position(types.End()).Offset]
		if bytes.Contains(source, []byte("`json:")) {
			fmt.Fprintf(w, "```go\n%s\n```\n\n", source)
		}
	}
}
