package pjrt_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/distributed/pjrt"
)

// oldMalloc takes mmap thresholds up to a limit only, as glibc does before 2.35, and reports the
// settings that it took.
const oldMalloc = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

int mallopt(int what, int value) {
  if (what == M_MMAP_THRESHOLD && value > atoi(getenv("LARGEST_THRESHOLD"))) return 0;
  printf("%s %d\n", what == M_MMAP_THRESHOLD ? "mmap" : what == M_TRIM_THRESHOLD ? "trim" : "other", value);
  fflush(stdout);
  return ((int (*)(int, int))dlsym(RTLD_NEXT, "mallopt"))(what, value);
}
`

// TestKeepsFreedMemory: what an old glibc refuses does not make malloc slower than it was.
func TestKeepsFreedMemory(t *testing.T) {
	if os.Getenv("LARGEST_THRESHOLD") != "" {
		if err := pjrt.Load("cpu", pluginPath(t)); err != nil {
			t.Fatal(err)
		}
		return
	}
	library := buildLibrary(t, oldMalloc)
	tests := []struct{ name, largest, want string }{
		{"since 2.35", "2147483647", "mmap 1073741824\ntrim 2147483647\n"},
		{"before 2.35", "33554432", "mmap 33554432\ntrim 2147483647\n"},
		{"one that takes none", "131072", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestKeepsFreedMemory$")
			cmd.Env = append(os.Environ(), "LD_PRELOAD="+library, "LARGEST_THRESHOLD="+test.largest)
			out, err := cmd.CombinedOutput()
			if got, _, ok := strings.Cut(string(out), "PASS\n"); err != nil || !ok || got != test.want {
				t.Errorf("malloc was set to %q, want %q (%v)", out, test.want, err)
			}
		})
	}
}

// buildLibrary compiles a shared library.
func buildLibrary(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	file, library := filepath.Join(dir, "library.c"), filepath.Join(dir, "library.so")
	if err := os.WriteFile(file, []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", library, file, "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	return library
}
