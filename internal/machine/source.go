package machine

import (
	"os"
	"path/filepath"
)

// Source returns the nearest folder above the working directory with a go.mod: for a test, that of
// the module's sources. It returns "." if there is none, as where only compiled tests are.
func Source() string {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	return "."
}
