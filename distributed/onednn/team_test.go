package onednn_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTeam: the members compute each part once, whatever the number of threads and rows, and a
// failure of one is that of all. The C compiler's race detector watches them, where it works.
func TestTeam(t *testing.T) {
	out, err := runTeam(t, "-fsanitize=thread")
	if err != nil && (strings.Contains(out, "unexpected memory mapping") || strings.Contains(out, "cannot find")) {
		t.Logf("without the race detector: %v\n%s", err, out)
		out, err = runTeam(t)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// runTeam compiles the program with those flags and runs it.
func runTeam(t *testing.T, flags ...string) (string, error) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "team")
	args := append(flags, "-O1", "-g", "-Wall", "-Werror", "-I.", "-o", program, filepath.Join("testdata", "team.c"), "team.c", "-lpthread")
	if out, err := exec.CommandContext(t.Context(), "cc", args...).CombinedOutput(); err != nil {
		return string(out), err
	}
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	return string(out), err
}
