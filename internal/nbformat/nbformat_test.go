package nbformat

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goNotebook returns a small notebook with these cells.
func goNotebook(cells string) string {
	return `{"nbformat":4,"nbformat_minor":5,"metadata":{"kernelspec":{"name":"gonb","language":"go"}},"cells":[` + cells + `]}`
}

func TestParseCells(t *testing.T) {
	tests := []struct {
		name, cell string
		want       Cell
	}{
		{"source as string", `{"cell_type":"code","source":"a\nb","metadata":{}}`, Cell{Type: Code, Source: "a\nb", Number: 1}},
		{"source as list", `{"cell_type":"code","source":["a\n","b"],"metadata":{}}`, Cell{Type: Code, Source: "a\nb", Number: 1}},
		{"no source", `{"cell_type":"raw","metadata":{}}`, Cell{Type: Raw, Number: 1}},
		{"id and tags", `{"cell_type":"markdown","id":"x1","source":"# T","metadata":{"tags":["train","x"]}}`,
			Cell{Type: Markdown, ID: "x1", Source: "# T", Tags: []string{"train", "x"}, Number: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nb, err := Parse("n.ipynb", []byte(goNotebook(tt.cell)))
			if err != nil {
				t.Fatal(err)
			}
			got := nb.Cells[0]
			want := tt.want
			if got.Type != want.Type || got.ID != want.ID || got.Source != want.Source || got.Number != want.Number ||
				!cmp.Equal(got.Tags, want.Tags) {
				t.Errorf("got %+v, want %+v", *got, want)
			}
		})
	}
}

func TestLanguage(t *testing.T) {
	tests := []struct{ name, metadata, want string }{
		{"kernelspec", `{"kernelspec":{"name":"x","language":"Go"}}`, "go"},
		{"language_info", `{"language_info":{"name":"go"}}`, "go"},
		{"kernel's name", `{"kernelspec":{"name":"gonb"}}`, "go"},
		{"nothing", `{}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nb, err := Parse("n.ipynb", []byte(`{"nbformat":4,"metadata":`+tt.metadata+`,"cells":[{"cell_type":"code","source":""}]}`))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := nb.language(); got != tt.want || err != nil {
				t.Errorf("language() = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	cell := `"cells":[{"cell_type":"code","source":"","metadata":{}}]`
	tests := []struct{ name, data, want string }{
		{"empty", " \n", "notebook n.ipynb: the file is empty"},
		{"Latin-1", "{\n \"a\": \"caf\xe9\"}", "notebook n.ipynb: line 2, column 11: the file isn't UTF-8 (byte 0xe9); if it is Latin-1, convert it with: iconv -f LATIN1 -t UTF-8"},
		{"not JSON", "{\n \"cells\": [,]\n}", "notebook n.ipynb: not JSON: line 2, column 12: invalid character ',' looking for beginning of value"},
		{"cut off", `{"cells": [`, "notebook n.ipynb: not JSON: line 1, column 11: unexpected end of JSON input"},
		{"not an object", `[1]`, "notebook n.ipynb: not a notebook: the file holds a JSON array, want an object"},
		{"no version", `{"a":1}`, "notebook n.ipynb: not a notebook: it has no nbformat field"},
		{"nbformat 3", `{"nbformat":3,"worksheets":[]}`, "notebook n.ipynb: nbformat 3 is too old, want 4; convert it with: jupyter nbconvert --to notebook --nbformat 4 NOTEBOOK"},
		{"nbformat 5", `{"nbformat":5,` + cell + `}`, "notebook n.ipynb: nbformat 5 is newer than 4, the newest that gonbatch reads; save it as nbformat 4"},
		{"python", `{"nbformat":4,"metadata":{"kernelspec":{"name":"python3","language":"python"}},` + cell + `}`,
			"notebook n.ipynb: the notebook is in python, and only Go notebooks can be used; choose a Go kernel for it"},
		{"a list of metadata", `{"nbformat":4,"metadata":[],` + cell + `}`, "notebook n.ipynb: metadata: json: cannot unmarshal array into Go value of type nbformat.metadata"},
		{"a kernel's number", `{"nbformat":4,"metadata":{"kernelspec":{"name":7}},` + cell + `}`, "notebook n.ipynb: metadata: json: cannot unmarshal number into Go struct field .kernelspec.name of type string"},
		{"an object of cells", `{"nbformat":4,"metadata":{},"cells":{}}`, "notebook n.ipynb: cells: json: cannot unmarshal object into Go value of type []json.RawMessage"},
		{"a text as a cell", `{"nbformat":4,"metadata":{},"cells":["x"]}`, "notebook n.ipynb: cell 1: json: cannot unmarshal string into Go value of type map[string]json.RawMessage"},
		{"no cells", `{"nbformat":4,"metadata":{},"cells":[]}`, "notebook n.ipynb: the notebook has no cells"},
		{"no cell type", goNotebook(`{"source":""}`), `notebook n.ipynb: cell 1: cell_type is "", want code, markdown or raw`},
		{"bad source", goNotebook(`{"cell_type":"code","source":7}`), "notebook n.ipynb: cell 1: source is neither a string nor a list of strings"},
		{"a tag", goNotebook(`{"cell_type":"code","source":"","metadata":{"tags":"train"}}`), `notebook n.ipynb: cell 1: metadata.tags is "train", want a list of strings, such as ["train"]`},
		{"no metadata", goNotebook(`{"cell_type":"code","source":"","metadata":7}`), "notebook n.ipynb: cell 1: metadata is 7, want an object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("n.ipynb", []byte(tt.data))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	tests := []struct{ name, path, want string }{
		{"no file", filepath.Join(dir, "no.ipynb"), "notebook " + dir + "/no.ipynb: no such file"},
		{"directory", dir, "notebook " + dir + ": is a directory; give the .ipynb file in it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Read(tt.path); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestMarshalKeepsEverything(t *testing.T) {
	for _, name := range []string{"v40.ipynb", "v45.ipynb"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name)
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			nb, err := Parse(path, want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := nb.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("Marshal differs from the file (-file +got):\n%s", diff)
			}
		})
	}
}

func TestMarshalNewCell(t *testing.T) {
	nb, err := Read("testdata/v45.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	made := &Cell{Type: Code, ID: "new", Source: "a < b\nc"}
	if err := made.SetField("outputs", []any{}); err != nil {
		t.Fatal(err)
	}
	nb.Cells = append(nb.Cells, made)
	data, err := nb.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse("n.ipynb", data)
	if err != nil {
		t.Fatal(err)
	}
	got := back.Cells[len(back.Cells)-1]
	if got.Type != Code || got.Source != "a < b\nc" || got.ID != "new" || string(got.Field("outputs")) != "[]" {
		t.Errorf("got %+v", *got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(goNotebook(`{"cell_type":"code","source":["a"],"metadata":{"tags":["x"]}}`)))
	f.Add([]byte(`{"nbformat":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		nb, err := Parse("n.ipynb", data)
		if err != nil {
			return
		}
		first, err := nb.Marshal()
		if err != nil {
			t.Fatalf("a notebook that was read cannot be written: %v", err)
		}
		back, err := Parse("n.ipynb", first)
		if err != nil {
			t.Fatalf("a notebook that was written cannot be read: %v", err)
		}
		if second, _ := back.Marshal(); string(second) != string(first) {
			t.Errorf("writing twice differs:\n%s\n%s", first, second)
		}
	})
}
