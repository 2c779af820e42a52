package kernel_test

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/tests/jupyter"
)

//go:embed testdata/randomuser.py
var randomUserScript string

// TestRandomUser executes random cells, from two front ends, and compares each result with a model.
func TestRandomUser(t *testing.T) {
	const cells = 60
	for seed := 1; seed <= 2; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			mark := fmt.Sprintf("TEST_MARK=%d-random-%d", os.Getpid(), seed)
			cmd := exec.Command(jupyter.Python(t), "-c", randomUserScript, fmt.Sprint(seed), fmt.Sprint(cells))
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), append(kernelEnv(t), mark, "TMPDIR="+t.TempDir())...)
			if out, err := bounded.CombinedOutput(cmd); err != nil || string(out[max(0, len(out)-3):]) != "ok\n" {
				t.Errorf("%v\n%s", err, tail(out))
			}
			waitFor(t, "all processes to end", func() bool { return len(processesWith(mark)) == 0 })
		})
	}
}
