package plugin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEnsureCompiler: what is there serves, above all the whole plugin; the plugin for CPUs that a
// job has does not stand in the way.
func TestEnsureCompiler(t *testing.T) {
	opts := Options{Platform: CUDA, Dir: t.TempDir(), Getenv: func(name string) string {
		return map[string]string{"GONBATCH_PLUGIN_DIR": "/nowhere"}[name]
	}}
	put := func(dir string, files ...string) {
		t.Helper()
		for _, name := range files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("x"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	own, whole := compiler.dir(opts), nvidia.dir(opts)
	put(own, FileName(CUDA))
	if dir := findCompiler(opts); dir != "" {
		t.Errorf("%s has no ptxas, and was taken", dir)
	}
	put(own, "cu13/bin/ptxas")
	if dir, err := EnsureCompiler(t.Context(), opts); err != nil || dir != own {
		t.Errorf("got %s, %v, want %s", dir, err, own)
	}
	opts.Getenv = func(string) string { return "" }
	put(whole, FileName(CUDA), "cu13/bin/ptxas")
	if dir, err := EnsureCompiler(t.Context(), opts); err != nil || dir != whole {
		t.Errorf("got %s, %v, want that of the whole plugin, %s", dir, err, whole)
	}
}

func TestCompilerRequirements(t *testing.T) {
	got := requirementsOf("nvidia-cuda-nvcc", "nvidia-nvvm")
	if n := strings.Count(got, "\n"); n != 2 || strings.Count(got, "--hash=sha256:") != 2 || !strings.Contains(got, "nvidia-nvvm==") {
		t.Errorf("got %q", got)
	}
}

// TestBesideCUDA: a folder with the CUDA plugin alone is not for a process on the CPU.
func TestBesideCUDA(t *testing.T) {
	dir := t.TempDir()
	environ := []string{"A=1", "GONBATCH_PLUGIN_DIR=" + dir, "B=2"}
	if got := BesideCUDA(environ); !slices.Equal(got, []string{"A=1", "B=2"}) || len(environ) != 3 || environ[2] != "B=2" {
		t.Errorf("got %q of %q", got, environ)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName(CPU)), []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := BesideCUDA(environ); !slices.Equal(got, environ) {
		t.Errorf("got %q of %q", got, environ)
	}
	if got := BesideCUDA([]string{"A=1", "GONBATCH_PLUGIN_DIR="}); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}
