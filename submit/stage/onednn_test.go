package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// buildLibrary compiles a library from C, with the compiler's further arguments.
func buildLibrary(t *testing.T, name, source string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	file, library := filepath.Join(dir, "a.c"), filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-shared", "-fPIC", "-o", library, file}, args...)
	if out, err := bounded.CombinedOutput(exec.Command("cc", args...)); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return library
}

// oneDNN3 has the function by which version 3 is known.
const oneDNN3 = "int dnnl_memory_desc_create_with_strides(void) { return 0; }"

// installed is a machine on which ldconfig lists these libraries.
type installed []string

func (l installed) Run(_ context.Context, name string, _ ...string) ([]byte, error) {
	if name != "ldconfig" {
		return nil, errors.New("not found")
	}
	var list strings.Builder
	for _, path := range l {
		fmt.Fprintf(&list, "\tlibdnnl.so.3 (libc6,x86-64) => %s\n", path)
	}
	return []byte(list.String()), nil
}

// TestOneDNN: a job gets the library that programs on this machine open.
func TestOneDNN(t *testing.T) {
	version2 := buildLibrary(t, "libdnnl.so.2", "int dnnl_version(void) { return 2; }")
	mine, theirs := buildLibrary(t, "libdnnl.so.3", oneDNN3), buildLibrary(t, "libdnnl.so.3", oneDNN3)
	sycl := buildLibrary(t, "libdnnl.so.3", oneDNN3+" int sycl(void); int f(void) { return sycl(); }", buildLibrary(t, "libsycl.so", "int sycl(void) { return 1; }", "-Wl,-soname,libsycl.so.7"))
	missing := filepath.Join(t.TempDir(), "libdnnl.so.3")
	for _, test := range []struct {
		name, variable string
		installed      installed
		spec           submit.JobSpec
		want, path     string
		err            []string
	}{
		{name: "none"},
		{name: "the loader's", installed: installed{theirs}, want: submit.OneDNNStaged, path: theirs},
		{name: "the loader's that fits", installed: installed{missing, version2, sycl, theirs}, want: submit.OneDNNStaged, path: theirs},
		{name: "the loader's doesn't fit", installed: installed{version2}},
		{name: "the variable's", variable: mine, installed: installed{theirs}, want: submit.OneDNNStaged, path: mine},
		{name: "a soname", variable: "libdnnl.so.3", installed: installed{theirs}, want: submit.OneDNNStaged, path: theirs},
		{name: "off", variable: "off", installed: installed{theirs}, want: "off"},
		{name: "the job's own", variable: missing, installed: installed{theirs}, spec: submit.JobSpec{Env: map[string]string{rundir.EnvOneDNN: "/node/libdnnl.so.3"}}},
		{name: "on GPUs", variable: missing, installed: installed{theirs}, spec: submit.JobSpec{Platform: plugin.CUDA}},
		{name: "on CPUs", variable: mine, spec: submit.JobSpec{Platform: plugin.CPU}, want: submit.OneDNNStaged, path: mine},
		{name: "a missing file", variable: missing, installed: installed{theirs}, err: []string{rundir.EnvOneDNN + "=" + missing, "no such file", "or to off", "--env " + rundir.EnvOneDNN + "=" + missing}},
		{name: "an unknown soname", variable: "libdnnl.so.4", installed: installed{theirs}, err: []string{rundir.EnvOneDNN + "=libdnnl.so.4", "the loader finds no library"}},
		{name: "for SYCL", variable: sycl, err: []string{sycl + " was built for SYCL"}},
		{name: "version 2", variable: version2, err: []string{version2 + " is not oneDNN 3"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			shell := submit.Shell{Environ: []string{"HOME=" + t.TempDir(), rundir.EnvOneDNN + "=" + test.variable}, Runner: test.installed}
			got, err := OneDNN(t.Context(), shell, test.spec)
			if test.err != nil {
				for _, want := range test.err {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%v, want %q", err, want)
					}
				}
				return
			}
			test.spec.OneDNN = got
			var p Prepared
			if err := errors.Join(err, p.TakeOneDNN(t.Context(), shell, &test.spec)); err != nil || got != test.want || p.oneDNN != test.path {
				t.Errorf("%q, from %q, %v", got, p.oneDNN, err)
			}
		})
	}
}

// TestStageOneDNN: the run directory has the library itself, or a link to one that needs others
// from its folder. It stays valid where the directory is moved.
func TestStageOneDNN(t *testing.T) {
	alone := buildLibrary(t, "libdnnl.so.3", oneDNN3)
	needs := buildLibrary(t, "libdnnl.so.3", oneDNN3+" int dnnl(void); int f(void) { return dnnl(); }", buildLibrary(t, "libiomp5.so", "int dnnl(void) { return 1; }"))
	for _, test := range []struct {
		path string
		link bool
	}{{alone, false}, {needs, true}} {
		draft, err := rundir.NewDraft(t.Context(), t.TempDir(), "x", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := (Prepared{oneDNN: test.path}).stageOneDNN(draft.Dir); err != nil {
			t.Fatal(err)
		}
		staged := draft.Dir.OneDNN()
		one, err1 := os.Stat(test.path)
		other, err2 := os.Stat(staged)
		if err1 != nil || err2 != nil || !os.SameFile(one, other) { // On one file system, a copy is a hard link.
			t.Errorf("%s: %v, %v", staged, err1, err2)
		}
		if info, err := os.Lstat(staged); err != nil || (info.Mode()&os.ModeSymlink != 0) != test.link {
			t.Errorf("%v, %v, want a symbolic link: %v", info.Mode(), err, test.link)
		}
		if err := draft.Discard(); err != nil {
			t.Error(err)
		}
	}
	spec := submit.JobSpec{OneDNN: submit.OneDNNStaged, RunDir: rundir.At("/moved/x")}
	if got := spec.RankEnv("1").OneDNN; got != "/moved/x/plugins/onednn.so" {
		t.Errorf("a rank's variable is %q", got)
	}
}
