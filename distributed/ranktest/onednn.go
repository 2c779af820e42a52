package ranktest

import (
	"os"
	"path/filepath"
	"testing"

	"gonbatch/internal/machine"
)

// OneDNN returns the path of the oneDNN library that tests/setup.sh installs.
func OneDNN(t testing.TB) string {
	t.Helper()
	path := filepath.Join(machine.Source(), ".cache", "onednn-venv", "lib", "libdnnl.so.3")
	if _, err := os.Stat(path); err != nil {
		machine.Lacks(t, "oneDNN is not installed (make test installs it): "+err.Error())
	}
	return path
}
