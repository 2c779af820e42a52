package export

import (
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

// TestEmbed: a //go:embed line is a mistake wherever it is: the program is compiled elsewhere.
func TestEmbed(t *testing.T) {
	for _, code := range []string{"//go:embed g.txt\nvar text string", "var (\n\t//go:embed g.txt\n\n\ttext string\n)"} {
		_, err := FromNotebook(cells(code, "%%\nprintln(text)"), Options{SourceDir: sourceDir(t)})
		const want = "//go:embed can't take files into a notebook's programs, which are compiled elsewhere: read the file when the program runs, with os.ReadFile or os.DirFS\n\t//go:embed g.txt"
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "cell 1, line ") {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
