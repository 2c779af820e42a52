package sharedlib_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/sharedlib"
)

// build compiles a library from C, with the compiler's further arguments.
func build(t *testing.T, source string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	file, library := filepath.Join(dir, "a.c"), filepath.Join(dir, "a.so")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-shared", "-fPIC", "-o", library, file}, args...)
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return library
}

const source = `#include <stdio.h>
int answer(void) { return puts("hello"); }`

// foreign returns a copy of a library whose header says that it is for another processor.
func foreign(t *testing.T, library string) string {
	t.Helper()
	data, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	data[18], data[19] = 243, 0 // e_machine: RISC-V.
	path := filepath.Join(t.TempDir(), "foreign.so")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheck(t *testing.T) {
	library := build(t, source)
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("a text"), 0o644); err != nil {
		t.Fatal(err)
	}
	has := sharedlib.Has("answer", "an oracle")
	for _, test := range []struct {
		name, path string
		symbol     sharedlib.Symbol
		glibc      string
		want       string
	}{
		{"it needs nothing", build(t, "int answer(void) { return 42; }", "-nostdlib"), has, "2.1", ""},
		{"it fits", library, has, sharedlib.OwnGLibC(), ""},
		{"an unknown glibc", library, has, "", ""},
		{"a newer glibc", library, has, "99.0", ""},
		{"an old glibc", library, has, "2.1", library + " needs glibc 2."},
		{"no such function", library, sharedlib.Has("question", "an oracle"), "", library + " is not an oracle: it does not export question"},
		{"a function that it calls", library, sharedlib.Has("puts", "a C library"), "", "is not a C library"},
		{"another processor", foreign(t, library), has, "", "is for the processor EM_RISCV, this machine has EM_"},
		{"a text", text, has, "", text + " is not a shared library"},
		{"no file", "/nowhere/a.so", has, "", "/nowhere/a.so"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := sharedlib.CheckFor(test.path, test.symbol, test.glibc)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	if err := sharedlib.Check(library, has); err != nil {
		t.Error(err)
	}
}

// TestNeeds: a library needs others of its own, or none.
func TestNeeds(t *testing.T) {
	library := build(t, source, "-lm", "-Wl,-soname,liboracle.so.1")
	other := build(t, "int answer(void); int ask(void) { return answer(); }", library)
	for path, want := range map[string][]string{library: {}, other: {"liboracle.so.1"}} {
		if got, err := sharedlib.Needs(path); !slices.Equal(got, want) || err != nil {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if _, err := sharedlib.Needs("/nowhere/a.so"); err == nil {
		t.Error("a missing library needs nothing")
	}
}
