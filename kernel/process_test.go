package kernel

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/bounded"
)

// TestRunTree: a command's end is noticed, and its orphan killed, though the orphan holds the
// command's output open. It runs in its own process, whose other children runTree would kill.
func TestRunTree(t *testing.T) {
	if os.Getenv("TEST_RUN_TREE") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRunTree$", "-test.v")
		cmd.Env = append(os.Environ(), "TEST_RUN_TREE=1")
		if out, err := bounded.CombinedOutput(cmd); err != nil || !strings.Contains(string(out), "--- PASS: TestRunTree") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	for script, want := range map[string]string{"sleep 3600 & echo out; exit 3": "exit status 3", "sleep 3600 & echo out": ""} {
		var out bytes.Buffer
		cmd := exec.Command("sh", "-c", script)
		cmd.Stdout = &out
		got := ""
		if err := runTree(t.Context(), cmd, time.Second); err != nil {
			got = err.Error()
		}
		if got != want || out.String() != "out\n" || len(children()) > 0 {
			t.Errorf("%s: %q, put out %q, children %v", script, got, out.String(), children())
		}
	}
}
