package nbformat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plain is a cell's content, without anything specific to one file format.
type plain struct {
	Type   CellType
	Source string
	Tags   []string
}

func plainCells(nb *Notebook) (cells []plain) {
	for _, c := range nb.Cells {
		cells = append(cells, plain{c.Type, c.Source, c.Tags})
	}
	return cells
}

// TestPercentIsTheNotebook: the file that jupytext 1.19 wrote for a notebook has the same cells. (A
// raw cell that is active in Go is code there, and the text before each %% is Go's own mark for
// it.)
func TestPercentIsTheNotebook(t *testing.T) {
	want, err := Read(filepath.Join("testdata", "jupytext.ipynb"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "jupytext.percent"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "jupytext.go")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	cells := plainCells(got)
	for i := range cells {
		cells[i].Source = strings.ReplaceAll(cells[i].Source, "//gonb:%%", "%%")
		if strings.Join(cells[i].Tags, "") == "active-go" {
			cells[i].Type = Raw
		}
	}
	if diff := cmp.Diff(plainCells(want), cells); diff != "" {
		t.Errorf("cells of the Go file (-notebook +Go):\n%s", diff)
	}
	if got.Metadata.KernelName != "gonb" {
		t.Errorf("kernel %q, want gonb", got.Metadata.KernelName)
	}
}

func TestParsePercent(t *testing.T) {
	tests := []struct {
		name, text string
		want       []plain
		err        string
	}{
		{name: "no header", text: "// %%\nvar x = 1\n\n// %%\nvar y = 2\n", want: []plain{{Code, "var x = 1", nil}, {Code, "var y = 2", nil}}},
		{name: "text above the first cell", text: "package main\n\n// %%\nvar x = 1", want: []plain{{Code, "package main", nil}, {Code, "var x = 1", nil}}},
		{name: "a title", text: "// %% Load the data tags=[\"a b\", \"c\"] collapsed=true\nx", want: []plain{{Code, "x", []string{"a b", "c"}}}},
		{name: "without a space", text: "//%%\r\nvar x = 1\r\n", want: []plain{{Code, "var x = 1", nil}}},
		{name: "markdown", text: "// %% [markdown] tags=[\"t\"]\n// # Head\n//\n//  indented", want: []plain{{Markdown, "# Head\n\n indented", []string{"t"}}}},
		{name: "magics", text: "// %%\n// %env A b\n// !ls *.go\n//gonb:%%\n// %d is one to jupytext\n// != is none",
			want: []plain{{Code, "%env A b\n!ls *.go\n//gonb:%%\n%d is one to jupytext\n// != is none", nil}}},
		{name: "a comment like a magic", text: "// %%\n// // %env A b", want: []plain{{Code, "// %env A b", nil}}},
		{name: "an indented mark", text: "// %%\nfunc f() {\n\t// %% no cell\n}", want: []plain{{Code, "func f() {\n\t// %% no cell\n}", nil}}},
		{name: "another language", text: "// %% language=\"sh\"\n// echo 1\n//\n// echo 2", want: []plain{{Code, "%%sh\necho 1\n\necho 2", nil}}},
		{name: "empty cell", text: "// %%\n\n// %%\nx", want: []plain{{Code, "", nil}, {Code, "x", nil}}},
		{name: "empty file", text: "\n", err: "notebook n.go: it has no cell: begin each with a line // %%, as jupytext does"},
		{name: "broken metadata", text: "// %%\nx\n// %% tags=[\ny", err: "notebook n.go: line 3: tags in the mark of a cell: unexpected EOF"},
		{name: "another language's notebook", text: "// ---\n// jupyter:\n//   kernelspec:\n//     language: python\n// ---\n// %%\nx",
			err: "notebook n.go: the notebook is in python, and only Go notebooks can be used; choose a Go kernel for it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nb, err := ParsePercent("n.go", []byte(tt.text))
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got  %v\nwant %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, plainCells(nb)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOtherTools reads notebooks written by other tools.
func TestOtherTools(t *testing.T) {
	tests := []struct {
		file string
		want []plain
	}{
		{"vscode.ipynb", []plain{{Markdown, "# From VS Code", nil}, {Code, "%%\nfmt.Println(\"hello\")", nil}, {Code, "%%bash\nls", []string{"notebook-only"}}}},
		{"colab.ipynb", []plain{{Markdown, "# From Colab", nil}, {Code, "%%\nfmt.Println(\"hello\")", []string{"train"}}}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			nb, err := Read(filepath.Join("testdata", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, plainCells(nb)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzParsePercent(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", "jupytext.percent"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("// %% a=1 b=\"c\" d=[\n")
	f.Fuzz(func(t *testing.T, text string) {
		nb, err := ParsePercent("n.go", []byte(text))
		if err != nil {
			return
		}
		data, err := nb.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("n.ipynb", data); err != nil {
			t.Errorf("what was read cannot be written and read again: %v", err)
		}
	})
}
