package nbformat

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestStripOutputs(t *testing.T) {
	tests := []struct{ name, data, want string }{
		{"last key", `{"cells":[{"source":"a","outputs":[{"text":"}]"}]}]}`, `{"cells":[{"source":"a","outputs":[]}]}`},
		{"first key", `{"cells":[{"outputs": [1, {"a":[2]}], "source":"a"}]}`, `{"cells":[{"outputs":[], "source":"a"}]}`},
		{"line breaks stay", "{\"cells\":[\n{\"outputs\": [\n1,\n2\n],\n\"source\":7}]}", "{\"cells\":[\n{\"outputs\":[]\n\n\n,\n\"source\":7}]}"},
		{"escapes", `{"cells":[{"outputs":["\"]}\\"],"x":"\\\"outputs\":"}]}`, `{"cells":[{"outputs":[],"x":"\\\"outputs\":"}]}`},
		{"no list", `{"cells":[{"outputs":null,"id":"x"}]}`, `{"cells":[{"outputs":[],"id":"x"}]}`},
		{"several cells", `{"cells":[{"outputs":[1]},{"outputs":[2]}]}`, `{"cells":[{"outputs":[]},{"outputs":[]}]}`},
		{"elsewhere", `{"outputs":[1],"metadata":{"cells":[{"outputs":[2]}]},"cells":[{"metadata":{"outputs":[3]}}]}`, ""},
		{"a value of that name", `{"cells":["outputs",{"a":"outputs"}]}`, ""},
		{"no notebook", `[{"cells":[{"outputs":[1]}]}]`, ""},
		{"cut off", `{"cells":[{"outputs":["abc`, `{"cells":[{"outputs":[]`},
		{"too many ends", `}]}]{"a":1}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := stripOutputs(iotest.OneByteReader(strings.NewReader(tt.data)))
			if tt.want == "" {
				tt.want = tt.data
			}
			if err != nil || string(got) != tt.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

// TestReadNamesThePlace: if outputs are left out, a mistake after them still has its line and
// column.
func TestReadNamesThePlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.ipynb")
	if err := os.WriteFile(path, []byte("{\"cells\": [{\"outputs\": [\n\"a\"], \"source\" \"x\"}]}"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := "notebook " + path + ": not JSON: line 2, column 16: invalid character '\"' after object key"
	if _, err := Read(path); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// FuzzStripOutputs: any notebook without its outputs equals the notebook with empty outputs.
func FuzzStripOutputs(f *testing.F) {
	for _, name := range []string{"v40.ipynb", "v45.ipynb"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(goNotebook(`{"cell_type":"code","outputs":[{"text":["\"}],"]},1],"source":"\\\"","metadata":{"outputs":[1]}},{"outputs":2}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := stripOutputs(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		var whole, stripped map[string]any
		if json.Unmarshal(data, &whole) != nil || strings.Contains(string(data), `\u`) {
			return // A key may contain escapes; no tool writes them, and its outputs are then kept.
		}
		if err := json.Unmarshal(got, &stripped); err != nil {
			t.Fatalf("%v\n%s\n%s", err, data, got)
		}
		for _, cell := range asList(stripped["cells"]) {
			if fields, ok := cell.(map[string]any); ok && len(asList(fields["outputs"])) > 0 {
				t.Errorf("outputs are left:\n%s", got)
			}
		}
		if diff := cmp.Diff(withoutOutputs(whole), withoutOutputs(stripped)); diff != "" {
			t.Errorf("%s\n%s\n%s", diff, data, got)
		}
	})
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

// withoutOutputs empties the cells' outputs.
func withoutOutputs(nb map[string]any) map[string]any {
	for _, cell := range asList(nb["cells"]) {
		if fields, ok := cell.(map[string]any); ok {
			if _, has := fields["outputs"]; has {
				fields["outputs"] = []any{}
			}
		}
	}
	return nb
}
