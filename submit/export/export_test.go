package export

import (
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/gocell"
	"gonbatch/internal/nbformat"
)

var update = flag.Bool("update", false, "write the golden files again")

// sourceDir returns the folder of a small stand-in for gonbatch's own source.
func sourceDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("testdata/source")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// read reads a notebook in testdata.
func read(t testing.TB, name string) *nbformat.Notebook {
	t.Helper()
	nb, err := nbformat.Read(filepath.Join("testdata", name+".ipynb"))
	if err != nil {
		t.Fatal(err)
	}
	return nb
}

// cells makes a notebook of code cells.
func cells(sources ...string) *nbformat.Notebook {
	nb := &nbformat.Notebook{Path: "n.ipynb", Major: 4}
	for i, source := range sources {
		nb.Cells = append(nb.Cells, &nbformat.Cell{Type: nbformat.Code, Source: source, Number: i + 1})
	}
	return nb
}

// describe returns a module as one text.
func describe(m *Module) string {
	var b strings.Builder
	for _, cell := range m.Cells {
		if cell.Shell {
			fmt.Fprintf(&b, "shell %s: cell %d line %d (%s) env=%v dir=%q %s\n", cell.Name, cell.Number, cell.Line, cell.ID, cell.Env, cell.Dir, cell.Title)
			continue
		}
		fmt.Fprintf(&b, "cell %s: cell %d (%s) args=%q env=%v dir=%q flags=%q\n", cell.Name, cell.Number, cell.ID,
			cell.Args, cell.Env, cell.Dir, cell.BuildFlags)
	}
	for _, c := range m.Commands {
		fmt.Fprintf(&b, "command: cell %d line %d: %s\n", c.Number, c.Line, c.Text)
	}
	fmt.Fprintf(&b, "imports %q\n", m.Imports)
	for _, w := range m.Warnings {
		fmt.Fprintf(&b, "warning %s\n", w)
	}
	for _, name := range m.FileNames() {
		if name != "go.sum" {
			fmt.Fprintf(&b, "-- %s --\n%s", name, m.Files[name])
		}
	}
	return strings.ReplaceAll(b.String(), m.SourceDir, "$SOURCE")
}

func TestGolden(t *testing.T) {
	for _, name := range []string{
		"hello", "redefine", "methods", "iota", "tuple", "inits", "magics", "shells", "tags", "imports", "comments", "panics", "broken",
	} {
		t.Run(name, func(t *testing.T) {
			m, err := FromNotebook(read(t, name), Options{SourceDir: sourceDir(t)})
			if err != nil {
				t.Fatal(err)
			}
			got := describe(m)
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("export differs from %s (-golden +got):\n%s", golden, diff)
			}
			checkFormatted(t, m)
		})
	}
}

// checkFormatted checks that every program is gofmt-ed.
func checkFormatted(t testing.TB, m *Module) {
	t.Helper()
	for _, cell := range m.Programs() {
		data := m.Files[cell.Name+"/main.go"]
		formatted, err := format.Source(data)
		if err != nil {
			t.Fatalf("%s: %v\n%s", cell.Name, err, data)
		}
		if diff := cmp.Diff(string(formatted), string(data)); diff != "" {
			t.Errorf("%s is not gofmt-ed (-gofmt +got):\n%s", cell.Name, diff)
		}
	}
}

// TestHandlers: the table and the handlers have the same magics.
func TestHandlers(t *testing.T) {
	for _, m := range gocell.Magics {
		if _, ok := handlers[m.Name]; ok != (m.InJob == gocell.Applies || m.InJob == gocell.Once) {
			t.Errorf("%s: %s in a job, and it has a handler: %v", m.Name, m.InJob, ok)
		}
	}
	for name := range handlers {
		if gocell.Lookup(name) == nil {
			t.Errorf("%s is not in the table", name)
		}
	}
}
