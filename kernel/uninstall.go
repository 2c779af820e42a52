package kernel

import (
	"fmt"
	"os"
	"path/filepath"
)

// Uninstall removes the kernelspec that Install with the same options writes, and returns its
// folder. It is an error if there is none.
func Uninstall(opts InstallOptions) (string, error) {
	dataDir, err := opts.dataDir()
	if err != nil {
		return "", fmt.Errorf("uninstall kernel %s: %w", Name, err)
	}
	dir := filepath.Join(dataDir, "kernels", Name)
	if _, err := os.Stat(filepath.Join(dir, "kernel.json")); err != nil {
		return "", fmt.Errorf("uninstall kernel %s: %w: it is not installed there; --user, --prefix and --sys-prefix say where", Name, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("uninstall kernel %s: %w", Name, err)
	}
	return dir, nil
}
