package tests

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
	"gonbatch/tests/jupyter"
)

// submitBinary builds the command once for all tests.
var submitBinary = sync.OnceValues(func() (string, error) {
	root, err := jupyter.Root()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "submit-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "submit")
	out, err := command(root, "go", "build", "-o", path, "./cmd/submit").CombinedOutput()
	if err != nil {
		return "", &exec.Error{Name: "go build ./cmd/submit: " + string(out), Err: err}
	}
	return path, nil
})

// user is someone with a folder of notebooks who types submit commands.
type user struct {
	folder string
	env    []string
}

func newUser(t *testing.T, env ...string) user {
	t.Helper()
	return user{folder: t.TempDir(), env: append([]string{"XDG_STATE_HOME=" + t.TempDir()}, env...)}
}

// submit runs a command in the user's folder and returns its output, and an error if it failed.
func (u user) submit(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := submitBinary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir, cmd.Env = u.folder, append(os.Environ(), u.env...)
	out, err := bounded.CombinedOutput(cmd)
	return string(out), err
}

// mustSubmit is submit for a command that must succeed.
func (u user) mustSubmit(t *testing.T, args ...string) string {
	t.Helper()
	out, err := u.submit(t, args...)
	if err != nil {
		t.Fatalf("submit %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// run returns the user's only run directory.
func (u user) run(t *testing.T) rundir.Dir {
	t.Helper()
	runs, err := rundir.List(filepath.Join(u.folder, "runs"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("run directories: %v, %v; want one", runs, err)
	}
	return runs[0]
}

// mnist returns the path of the example notebook.
func mnist(t *testing.T) string { return example(t, "mnist.ipynb") }

// example returns the path of one of the project's notebooks.
func example(t *testing.T, name string) string {
	t.Helper()
	root, err := jupyter.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "notebooks", name)
}

// copyExample copies one of the project's notebooks to the user's folder, and returns its name.
func (u user) copyExample(t *testing.T, name string) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(u.folder, name), []byte(read(t, example(t, name))), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// write writes a notebook of code cells to the user's folder and returns its name.
func (u user) write(t *testing.T, name string, cells ...string) string {
	t.Helper()
	type cell struct {
		Type     string         `json:"cell_type"`
		ID       string         `json:"id"`
		Metadata map[string]any `json:"metadata"`
		Source   string         `json:"source"`
		Outputs  []any          `json:"outputs"`
		Count    *int           `json:"execution_count"`
	}
	notebook := map[string]any{
		"nbformat": 4, "nbformat_minor": 5,
		"metadata": map[string]any{"kernelspec": map[string]string{"name": "gonb", "language": "go", "display_name": "Go (gonb)"}},
	}
	var all []cell
	for i, source := range cells {
		all = append(all, cell{Type: "code", ID: "cell-" + string(rune('a'+i)), Metadata: map[string]any{}, Source: source, Outputs: []any{}})
	}
	notebook["cells"] = all
	text, err := json.Marshal(notebook)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(u.folder, name), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// wantAll fails the test for each text that is not in out.
func wantAll(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%q is not in:\n%s", text, out)
		}
	}
}

// read returns the content of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
