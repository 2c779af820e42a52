package plugin

import (
	"os"
	"path/filepath"
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
