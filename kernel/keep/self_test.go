package keep

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"gonbatch/internal/bounded"
)

// runSelf runs a test of this program in a separate process, and returns its exit status.
func runSelf(t *testing.T, test, variable string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), variable)
	out, err := bounded.CombinedOutput(cmd)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("%s", out)
	return cmd.ProcessState.ExitCode()
}
