package corpus

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/bounded"
	"gonbatch/internal/nbformat"
	"gonbatch/submit/export"
)

// TestExports checks that exports of the corpus are formatted by gofmt, identical each time, and
// clean for go vet.
func TestExports(t *testing.T) {
	all := t.TempDir()
	for _, c := range load(t) {
		if c.Refused != "" {
			continue
		}
		dir := t.TempDir()
		if err := c.stage(dir); err != nil {
			t.Fatal(err)
		}
		m := exported(t, c, dir)
		if diff := cmp.Diff(m.Files, exported(t, c, dir).Files); diff != "" {
			t.Errorf("%s: two exports differ:\n%s", c.Name, diff)
		}
		for _, cell := range m.Programs() {
			data := m.Files[cell.Source()]
			if formatted, err := format.Source(data); err != nil || string(formatted) != string(data) {
				t.Errorf("%s: %s is not formatted by gofmt: %v\n%s", c.Name, cell.Source(), err, cmp.Diff(string(formatted), string(data)))
			}
		}
		if len(m.Commands) > 0 {
			continue // Its go.mod differs from that of the others.
		}
		writeTogether(t, all, c, m)
	}
	cmd := exec.CommandContext(t.Context(), "go", "vet", "./...")
	cmd.Dir, cmd.Env = all, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := bounded.CombinedOutput(cmd); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}

// exported exports a notebook of the corpus from its folder.
func exported(t *testing.T, c Case, dir string) *export.Module {
	t.Helper()
	nb, err := nbformat.Read(filepath.Join(dir, filepath.Base(c.Path)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := export.FromNotebook(nb, export.Options{SourceDir: rootDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// writeTogether adds a module's programs to one module with all others, so that one call of go vet
// reads them all.
func writeTogether(t *testing.T, all string, c Case, m *export.Module) {
	t.Helper()
	for name, data := range m.Files {
		path := filepath.Join(all, c.Name, name)
		if !strings.Contains(name, "/") {
			path = filepath.Join(all, name)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
