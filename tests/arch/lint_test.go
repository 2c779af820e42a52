package arch

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/internal/machine"
)

// TestLint makes `make test` report what `make lint` reports.
func TestLint(t *testing.T) {
	t.Parallel()
	root := sourceRoot(t)
	linter := filepath.Join(root, ".cache", "bin", "golangci-lint")
	if _, err := os.Stat(linter); errors.Is(err, fs.ErrNotExist) {
		machine.Lacks(t, "no golangci-lint in .cache/bin: run `make setup`")
	}
	cmd := exec.CommandContext(t.Context(), linter, "run", "--allow-serial-runners")
	cmd.Dir = root
	if out, err := bounded.CombinedOutput(cmd); err != nil {
		t.Errorf("golangci-lint: %v\n%s", err, out)
	}
}
