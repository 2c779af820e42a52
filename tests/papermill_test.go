package tests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/kernel"
	"gonbatch/tests/jupyter"
)

// TestPapermill executes a notebook with parameters using the real papermill, which finds the
// translator by its entry point.
func TestPapermill(t *testing.T) {
	t.Parallel()
	python := jupyter.Python(t)
	u := newUser(t)
	notebook := filepath.Join(u.folder, u.write(t, "in.ipynb",
		"var rate float32 = 0.1\nvar name = \"none\"\nvar sizes = []int{1}\nconst epochs = 2\nvar quiet bool",
		"var doubled = rate * 2",
		"%%\nfmt.Println(rate, doubled, name, sizes, epochs, quiet)"))
	tag(t, notebook)
	out := filepath.Join(u.folder, "out.ipynb")
	parameters := "rate: 1\nname: \"two \\\"words\\\" ä\"\nsizes: [3, 4]\nepochs: 7\nquiet: true\n"
	cmd := command(u.folder, filepath.Join(filepath.Dir(python), "papermill"), notebook, out, "-k", kernel.Name, "-y", parameters, "--no-progress-bar")
	cmd.Env = append(os.Environ(), u.kernelEnv(t)...)
	if text, err := bounded.CombinedOutput(cmd); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if want := `1 2 two \"words\" ä [3 4] 7 true\n`; !strings.Contains(string(text), want) {
		t.Errorf("the executed notebook lacks %s:\n%s", want, text)
	}
}

// TestPapermillMistakes checks that papermill rejects parameters that cannot be Go variables, and
// how others become Go.
func TestPapermillMistakes(t *testing.T) {
	t.Parallel()
	python := jupyter.Python(t)
	script := `
import gonbatch_papermill as g
for name, value in [("a.b", 1), ("x", None)]:
    try:
        print(g.GoTranslator.codify({name: value}))
    except ValueError as error:
        print("error:", error)
print(g.GoTranslator.codify({"m": {"k": [1, 2.5]}, "f": float("inf"), "e": []}))
`
	out, err := command(t.TempDir(), python, "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wantAll(t, string(out), "error: parameter 'a.b': not the name of a Go variable", "error: a Go variable cannot be None",
		`var m = map[string][]float64{"k": []float64{1, 2.5}}`, "var f = math.Inf(1)", "var e = []any{}")
}

// tag tags the first cell as the one that declares the parameters.
func tag(t *testing.T, notebook string) {
	t.Helper()
	text, err := os.ReadFile(notebook)
	if err != nil {
		t.Fatal(err)
	}
	var nb map[string]any
	if err := json.Unmarshal(text, &nb); err != nil {
		t.Fatal(err)
	}
	nb["cells"].([]any)[0].(map[string]any)["metadata"] = map[string]any{"tags": []string{"parameters"}}
	if text, err = json.Marshal(nb); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(notebook, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
