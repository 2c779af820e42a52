package export

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/nbformat"
	"gonbatch/submit/export/nbcell"
)

func TestTags(t *testing.T) {
	tests := []struct {
		name string
		tags []string
		kind nbformat.CellType
		// want is how the cell's program runs; "" if there is none.
		want string
	}{
		{"none", nil, nbformat.Code, "train on every rank"},
		{"rank-0", []string{"rank-0", "fit"}, nbformat.Code, "fit once by fit.sh"},
		{"one-task", []string{"one-task"}, nbformat.Code, "train once by train.sh"},
		{"raises-exception", []string{"raises-exception"}, nbformat.Code, "train on every rank by train.sh may fail"},
		{"once and may fail", []string{"rank-0", "raises-exception"}, nbformat.Code, "train once by train.sh may fail"},
		{"remove-cell", []string{"remove-cell"}, nbformat.Code, "train on every rank"},
		{"injected-parameters", []string{"injected-parameters"}, nbformat.Code, "train on every rank"},
		{"skip-execution", []string{"skip-execution"}, nbformat.Code, ""},
		{"notebook-only", []string{"notebook-only"}, nbformat.Code, ""},
		{"active-ipynb", []string{"active-ipynb"}, nbformat.Code, ""},
		{"active-ipynb-py", []string{"active-ipynb-py"}, nbformat.Code, ""},
		{"active-ipynb-go", []string{"active-ipynb-go"}, nbformat.Code, "train on every rank"},
		{"a raw cell", nil, nbformat.Raw, ""},
		{"active-go, raw", []string{"active-go"}, nbformat.Raw, "train on every rank"},
		{"active-py, raw", []string{"active-py"}, nbformat.Raw, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nb := cells("# Train", "%%\nprintln(1)", "!true")
			nb.Cells[0].Type = nbformat.Markdown
			nb.Cells[1].Tags, nb.Cells[1].Type = tt.tags, tt.kind
			m, err := FromNotebook(nb, Options{SourceDir: sourceDir(t)})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, cell := range m.Programs() {
				got = cell.Name + " on every rank"
				if cell.Once {
					got = cell.Name + " once"
				}
				if cell.Script() != "" {
					got += " by " + cell.Script()
				}
				if cell.MayFail {
					got += " may fail"
				}
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestInjectedParameters(t *testing.T) {
	nb := cells("var epochs = 2\nvar rate = 0.5", "// Parameters\nvar epochs = 7", "%%\nprintln(epochs, rate)")
	nb.Cells[0].Tags, nb.Cells[1].Tags = []string{nbcell.ParametersTag}, []string{nbcell.InjectedTag}
	for _, tt := range []struct{ given, want string }{{"", "var epochs int = 7\n"}, {"9", "var epochs int = 9\n"}} {
		opt := Options{SourceDir: sourceDir(t)}
		if tt.given != "" {
			opt.Parameters = map[string]string{"epochs": tt.given}
		}
		m, err := FromNotebook(nb, opt)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(m.Files["cell-3/main.go"]); !strings.Contains(text, tt.want) || len(m.Warnings) > 0 {
			t.Errorf("given %q, want %q, no warnings; warnings %v:\n%s", tt.given, tt.want, m.Warnings, text)
		}
		if len(m.Parameters) != 2 || m.Parameters[0].Number != 2 {
			t.Errorf("parameters %+v, want two, the first from cell 2", m.Parameters)
		}
	}
}

// TestInjectedTypes: a value that papermill injects has its parameter's type, as in the kernel.
func TestInjectedTypes(t *testing.T) {
	nb := cells("var rate float32 = 0.5\nconst n = 3", "// Parameters\nvar rate = 1\nvar n = 4\n", "%%\nprintln(rate, n)")
	nb.Cells[0].Tags, nb.Cells[1].Tags = []string{nbcell.ParametersTag}, []string{nbcell.InjectedTag}
	m, err := FromNotebook(nb, Options{SourceDir: sourceDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"var rate float32 = 1\n", "const n = 4\n"} {
		if text := string(m.Files["cell-3/main.go"]); !strings.Contains(text, want) {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
}

func TestEmbed(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "a", "x.go": "package x\n", "web/index.html": "i", "web/.hidden": "h", "web/deep/b c.css": "b"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ name, patterns, want, err string }{
		{"a file", "a.txt", "a.txt", ""},
		{"a folder", "web", "web/deep/b c.css web/index.html", ""},
		{"all of a folder", "all:web", "web/.hidden web/deep/b c.css web/index.html", ""},
		{"patterns and quotes", "*.txt \"web/deep/b c.css\"", "a.txt web/deep/b c.css", ""},
		{"a file that Go would compile", "*.go", "", "n.ipynb, cell 1, line 3: //go:embed *.go: the go command would compile x.go into the program: move it into a subfolder\n\t//go:embed *.go"},
		{"missing", "no.txt", "", "n.ipynb, cell 1, line 3: //go:embed no.txt: there is no such file in the notebook's folder, " + dir + "\n\t//go:embed no.txt"},
		{"outside", "../a.txt", "", "n.ipynb, cell 1, line 3: //go:embed ../a.txt: give a path below the notebook's folder, without .. and not absolute\n\t//go:embed ../a.txt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nb := cells("import \"embed\"\n\n//go:embed "+tt.patterns+"\nvar files embed.FS", "%%\nprintln(files)")
			nb.Path = filepath.Join(dir, "n.ipynb")
			m, err := FromNotebook(nb, Options{SourceDir: sourceDir(t)})
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got  %v\nwant %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, name := range m.FileNames() {
				if rest, ok := strings.CutPrefix(name, "cell-2/"); ok && rest != "main.go" {
					got = append(got, rest)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestEmbedPlaces: as in Go, a variable in a group has its own //go:embed line, and blank lines and
// comments may follow the line. Elsewhere the line is a mistake.
func TestEmbedPlaces(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, code, err string }{
		{name: "in a group", code: "var (\n\tn = 1\n\t//go:embed a.txt\n\ttext string\n)"},
		{name: "in a group, with a blank line", code: "var (\n\t//go:embed a.txt\n\n\ttext string\n\tn = 1\n)"},
		{name: "blank lines and a comment", code: "const n = 1\n\n//go:embed a.txt\n\n// The text.\nvar text string"},
		{name: "two variables", code: "//go:embed a.txt\nvar text, n string", err: "n.ipynb, cell 1, line 3: //go:embed a.txt: it gives files to one variable: declare text on a line of its own\n\t//go:embed a.txt"},
		{name: "a value", code: "var text, n = 1, 2\n//go:embed a.txt\nvar other = text", err: "n.ipynb, cell 1, line 4: //go:embed a.txt: declare other with a type and without a value, as in var other string\n\t//go:embed a.txt"},
		{name: "a variable in a comment", code: "//go:embed a.txt\n// var text string\nconst text, n = 1, 2", err: "n.ipynb, cell 1, line 3: //go:embed a.txt: it is above no variable: put it on a line of its own, directly above a variable that is declared outside of functions\n\t//go:embed a.txt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nb := cells("import _ \"embed\"\n\n"+tt.code, "%%\nprintln(text, n)")
			nb.Path = filepath.Join(dir, "n.ipynb")
			m, err := FromNotebook(nb, Options{SourceDir: sourceDir(t)})
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got  %v\nwant %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if text := string(m.Files["cell-2/main.go"]); string(m.Files["cell-2/a.txt"]) != "a" || strings.Count(text, "//go:embed a.txt\n") != 1 {
				t.Errorf("%q has no embedded file:\n%s", m.FileNames(), text)
			}
		})
	}
}

// TestEmbedWithoutImport: as in the kernel, embedded files need no import in a cell.
func TestEmbedWithoutImport(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, imports := range []string{"", "import \"embed\"\n", "import _ \"embed\"\n"} {
		nb := cells(imports+"//go:embed a.txt\nvar text string", "%%\nprintln(text)")
		nb.Path = filepath.Join(dir, "n.ipynb")
		m, err := FromNotebook(nb, Options{SourceDir: sourceDir(t)})
		if err != nil {
			t.Fatal(err)
		}
		if text := string(m.Files["cell-2/main.go"]); !strings.Contains(text, "\t_ \"embed\"\n") || strings.Count(text, "\"embed\"") != 1 {
			t.Errorf("%q: want one blank import of package embed:\n%s", imports, text)
		}
	}
}

// TestEmbedWritten: a program can't embed a file that a cell of the same job writes.
func TestEmbedWritten(t *testing.T) {
	nb := cells("%%writefile -a ./g.txt\nx", "//go:embed g.txt\nvar text string\n%%\nprintln(text)")
	nb.Path = filepath.Join(t.TempDir(), "n.ipynb")
	_, err := FromNotebook(nb, Options{SourceDir: sourceDir(t)})
	const want = "n.ipynb, cell 2, line 1: //go:embed g.txt: cell 1 writes this file, but the job's programs are compiled before it runs: run cell 1 in the kernel first\n\t//go:embed g.txt"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
