package corpus

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/internal/nbformat"
	"gonbatch/tests/jupyter"
)

// validate checks notebooks with nbformat's own JSON schemas and prints the first error.
const validate = `
import sys, nbformat
for path in sys.argv[1:]:
    try:
        nbformat.validate(nbformat.read(path, as_version=nbformat.NO_CONVERT), relax_add_props=False)
    except Exception as problem:
        sys.exit(f"{path}: {problem}")
`

// TestSchemas checks that what package nbformat writes is valid according to nbformat's schemas:
// the corpus, and notebooks of other tools.
func TestSchemas(t *testing.T) {
	python := jupyter.Python(t)
	fixtures := filepath.Join(rootDir(t), "internal", "nbformat", "testdata")
	paths, err := filepath.Glob(filepath.Join(fixtures, "*.ipynb"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range load(t) {
		paths = append(paths, c.Path)
	}
	args := []string{"-c", validate}
	for _, path := range paths {
		if filepath.Base(path) == "v45.ipynb" {
			continue // It has fields that no schema knows, to test that they are kept.
		}
		args = append(args, rewrite(t, path))
	}
	if out, err := bounded.CombinedOutput(exec.CommandContext(t.Context(), python, args...)); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// rewrite reads a notebook, changes a cell, and writes it to a new folder.
func rewrite(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	nb, err := nbformat.Parse(path, data)
	if err != nil {
		t.Fatal(err)
	}
	if err := nb.Cells[0].SetMetadata("added", true); err != nil {
		t.Fatal(err)
	}
	if data, err = nb.Marshal(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), filepath.Base(path)+".ipynb")
	if err := os.WriteFile(out, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return out
}
