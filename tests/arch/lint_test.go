package arch

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gonbatch/internal/bounded"
)

// TestLint makes `make test` report what `make lint` reports.
func TestLint(t *testing.T) {
	t.Parallel()
	root := sourceRoot(t)
	linter := filepath.Join(root, ".cache", "bin", "golangci-lint")
	if _, err := os.Stat(linter); errors.Is(err, fs.ErrNotExist) {
		const reason = "no golangci-lint in .cache/bin: run `make setup`"
		if os.Getenv("CI") == "true" {
			t.Fatal("CI=true, but " + reason)
		}
		t.Skip(reason)
	}
	cmd := exec.CommandContext(t.Context(), linter, "run", "--allow-serial-runners")
	cmd.Dir = root
	if out, err := bounded.CombinedOutput(cmd); err != nil {
		t.Errorf("golangci-lint: %v\n%s", err, out)
	}
}
