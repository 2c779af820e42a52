package kernel_test

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/tests/jupyter"
)

//go:embed testdata/interrupts.py
var interruptsScript string

// TestInterruptsAnytime interrupts cells at random times, from the very beginning: while they are
// composed, built, started, and while they run. INTERRUPTS sets the number.
func TestInterruptsAnytime(t *testing.T) {
	t.Parallel()
	count := 30
	if n, err := strconv.Atoi(os.Getenv("INTERRUPTS")); err == nil {
		count = n
	}
	cmd := exec.Command(jupyter.Python(t), "-c", interruptsScript, "1", fmt.Sprint(count))
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), append(kernelEnv(t), "TMPDIR="+t.TempDir())...)
	if out, err := bounded.CombinedOutput(cmd); err != nil || string(out[max(0, len(out)-3):]) != "ok\n" {
		t.Errorf("%v\n%s", err, tail(out))
	}
}
