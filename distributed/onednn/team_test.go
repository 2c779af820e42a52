package onednn_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/machine"
)

// TestTeam: the members compute each part once, whatever the number of threads and rows, and a
// failure of one is that of all. The C compiler's race detector watches them.
func TestTeam(t *testing.T) {
	out, err := runTeam(t, "-fsanitize=thread")
	if err != nil && (strings.Contains(out, "unexpected memory mapping") || strings.Contains(out, "cannot find")) {
		if out, err := runTeam(t); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		machine.Lacks(t, "the C compiler's race detector does not start: "+out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestWinograd: Winograd's algorithm gives what a plain loop gives, whatever the sizes, the zeros
// around the images, the processor and the number of parts, in the memory that it asks for.
func TestWinograd(t *testing.T) {
	flags := []string{"-O2", "-lm"}
	if testing.Short() { // Without the sanitizer, in a quarter of the time.
		if out, err := runC(t, "winograd.c", flags...); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	out, err := runC(t, "winograd.c", append(flags, "-fsanitize=address")...)
	if err != nil && strings.Contains(out, "cannot find") {
		if out, err := runC(t, "winograd.c", flags...); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		machine.Lacks(t, "the C compiler's address sanitizer is missing: "+out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestVariants: the update of Adam gives the same bits on all processors, whatever the
// optimization.
func TestVariants(t *testing.T) {
	for _, level := range []string{"-O2", "-O0"} {
		out, err := runC(t, "variants.c", level, "-lm")
		if err != nil {
			t.Errorf("%s: %v\n%s", level, err, out)
		}
		t.Logf("%s: %s", level, out)
	}
}

// runTeam compiles the program of the team with those flags and runs it.
func runTeam(t *testing.T, flags ...string) (string, error) {
	t.Helper()
	return runC(t, "team.c", append(flags, "-O1", "team.c", "-lpthread")...)
}

// runC compiles a program of testdata with those arguments and runs it.
func runC(t *testing.T, source string, args ...string) (string, error) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	args = append([]string{"-g", "-Wall", "-Werror", "-I.", "-o", program, filepath.Join("testdata", source)}, args...)
	if out, err := exec.CommandContext(t.Context(), "cc", args...).CombinedOutput(); err != nil {
		return string(out), err
	}
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	return string(out), err
}
