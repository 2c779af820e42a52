package onednn_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/distributed/onednn"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
)

func TestCandidates(t *testing.T) {
	for _, test := range []struct {
		value string
		want  []string
	}{
		{"", []string{"libdnnl.so.3"}},
		{onednn.Off, nil},
		{"/opt/libdnnl.so", []string{"/opt/libdnnl.so"}},
	} {
		got := onednn.Candidates(func(name string) string {
			if name != rundir.EnvOneDNN {
				t.Errorf("asked for %s", name)
			}
			return test.value
		})
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.value, got, test.want)
		}
	}
}

// build compiles a library from C.
func build(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	file, library := filepath.Join(dir, "library.c"), filepath.Join(dir, "library.so")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", library, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return library
}

// TestOpen: what is not oneDNN 3 is refused with its name, and the next candidate is tried.
func TestOpen(t *testing.T) {
	other := build(t, "int other;")
	_, err := onednn.Open([]string{"/nowhere/libdnnl.so", other})
	for _, want := range []string{"/nowhere/libdnnl.so", other + " is not oneDNN 3: no symbol dnnl_version", rundir.EnvOneDNN, onednn.Off} {
		if !errors.Is(err, onednn.ErrNoLibrary) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	path := ranktest.OneDNN(t)
	library, err := onednn.Open([]string{other, path})
	if err != nil {
		t.Fatal(err)
	}
	if library.Path() != path || !strings.HasPrefix(library.Version(), "3.") || library.Convolution() == nil || library.Product() == nil {
		t.Errorf("opened %s, version %q", library.Path(), library.Version())
	}
	if again, err := onednn.Open(nil); err != nil || again != library {
		t.Errorf("the second time: %v, %v", again, err)
	}
}
