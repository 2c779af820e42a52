package onednn_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonbatch/distributed/affinity"
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

// fake returns the source of a library with all functions of oneDNN, which do nothing.
func fake(t *testing.T, major, runtime int) string {
	t.Helper()
	source, err := os.ReadFile("library.c")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "struct { int major, minor, patch; const char *hash; unsigned cpu, gpu; } v = {%d, 1, 0, \"\", %d, 0};\nvoid *dnnl_version(void) { return &v; }\n", major, runtime)
	for _, m := range regexp.MustCompile(`"(dnnl_\w+)"`).FindAllStringSubmatch(string(source), -1) {
		if m[1] != "dnnl_version" {
			fmt.Fprintf(&b, "int %s(void) { return 0; }\n", m[1])
		}
	}
	return b.String()
}

// TestOpenRefuses: libraries of another version, or for other threads or memory, are refused with
// the reason.
func TestOpenRefuses(t *testing.T) {
	const sycl, threadPool = 512, 8
	for want, source := range map[string]string{
		"is oneDNN 2, not 3": fake(t, 2, 2),
		"is oneDNN 4, not 3": fake(t, 4, 2),
		"(runtime 512)":      fake(t, 3, sycl),
		"(runtime 8)":        fake(t, 3, threadPool),
	} {
		path := build(t, source)
		if _, err := onednn.Open([]string{path}); !errors.Is(err, onednn.ErrNoLibrary) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
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

// TestThreads: no more threads compute than the limit, nor than the process may use CPUs.
func TestThreads(t *testing.T) {
	library, err := onednn.Open([]string{ranktest.OneDNN(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { library.LimitThreads(0) })
	cpus, err := affinity.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int]int{0: len(cpus), 1: 1, len(cpus): len(cpus), len(cpus) + 1: len(cpus)} {
		library.LimitThreads(limit)
		if got := library.Threads(); got != want {
			t.Errorf("with the limit %d, %d threads compute, want %d", limit, got, want)
		}
	}
}
