package stage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParameterSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "params.yaml")
	for _, tc := range []struct {
		name, yaml string
		params     []string
		want       map[string]string
		err        string
	}{
		{name: "none", want: map[string]string{}},
		{name: "command line", params: []string{"a=1", "b=x=y", "c=", "a=2"}, want: map[string]string{"a": "2", "b": "x=y", "c": ""}},
		{name: "file", yaml: "lr: 5e-4\nname: \"a b\"\non: true # note\nempty: ''\n", want: map[string]string{"lr": "5e-4", "name": "a b", "on": "true", "empty": ""}},
		{name: "the command line wins", yaml: "lr: 1\nn: 2\n", params: []string{"lr=3"}, want: map[string]string{"lr": "3", "n": "2"}},
		{name: "no value", params: []string{"epochs"}, err: `-p "epochs": give NAME=VALUE, as in -p epochs=3`},
		{name: "no name", params: []string{"=3"}, err: `-p "=3": give NAME=VALUE`},
		{name: "lists and maps", yaml: "a: [1, 2]\nb:\n  - x\n  - \"y, z\"\nc:\n  d: [1.5]\n", want: map[string]string{"a": "[1, 2]", "b": `[x, "y, z"]`, "c": "{d: [1.5]}"}},
		{name: "nothing", yaml: "a:\n", err: "line 1: a: give a number, a string, a boolean, a list or a map"},
		{name: "twice", yaml: "a: 1\na: 2\n", err: "line 2: a is set twice"},
		{name: "no mapping", yaml: "- a\n", err: "give one line NAME: VALUE for each parameter"},
		{name: "no YAML", yaml: "a: [", err: "yaml: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			from := ""
			if tc.yaml != "" {
				if err := os.WriteFile(file, []byte(tc.yaml), 0o644); err != nil {
					t.Fatal(err)
				}
				from = file
			}
			got, _, err := parameters(from, tc.params)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %s", err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

// TestParameterPlaces: a value from the file has the place of its line, unless -p overrides it.
func TestParameterPlaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "params.yaml")
	if err := os.WriteFile(file, []byte("lr: 1\n\nn: 300\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, places, err := parameters(file, []string{"lr=2"})
	if diff := cmp.Diff(map[string]string{"n": file + ", line 3"}, places); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

// TestNotebookAsParameters: -f means --follow in other commands, so a notebook after -f is an
// error.
func TestNotebookAsParameters(t *testing.T) {
	_, _, err := parameters("runs/a b.ipynb", nil)
	if err == nil || !strings.Contains(err.Error(), "-f runs/a b.ipynb: that is a notebook") || !strings.Contains(err.Error(), "use -F") {
		t.Errorf("got %v, want what -f is, and -F", err)
	}
}
