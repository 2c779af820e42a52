package kernel_test

import (
	_ "embed"
	"os"
	"os/exec"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/tests/jupyter"
)

//go:embed testdata/frontends.py
var frontEndsScript string

// TestFrontEnds: front ends that are silent, malformed or stopped don't affect the others, and cost
// little memory.
func TestFrontEnds(t *testing.T) {
	t.Parallel() // It mostly waits for the kernel to give up on a client.
	cmd := exec.Command(jupyter.Python(t), "-c", frontEndsScript)
	cmd.Env = append(os.Environ(), append(kernelEnv(t), "TMPDIR="+t.TempDir())...)
	if out, err := bounded.CombinedOutput(cmd); err != nil || string(out[max(0, len(out)-3):]) != "ok\n" {
		t.Errorf("%v\n%s", err, tail(out))
	}
}
