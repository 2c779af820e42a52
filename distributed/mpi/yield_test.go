package mpi_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/distributed/mpi"
)

// TestYieldRests: a wait of less than a millisecond only yields. A longer one sleeps, for at most a
// sixteenth of the time that it has lasted, and at most a millisecond. Computing in between begins
// a new wait.
func TestYieldRests(t *testing.T) {
	compiler := strings.Fields(cmp.Or(os.Getenv("CC"), "cc"))
	program := filepath.Join(t.TempDir(), "yield")
	if out, err := exec.Command(compiler[0], append(compiler[1:], "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, "testdata/yield.c", "-ldl", "-lpthread")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, seed := range []string{"1", "2", "3"} {
		if out, err := exec.Command(program, seed).CombinedOutput(); err != nil {
			t.Errorf("seed %s: %v\n%s", seed, err, out)
		}
	}
}

// TestFunctionsAreFound: libraries that are opened at run time call this package's sched_yield and
// pthread_setname_np.
func TestFunctionsAreFound(t *testing.T) {
	if !mpi.FunctionsAreFound() {
		t.Error("libraries call the C library's functions")
	}
}
