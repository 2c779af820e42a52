package kernel

import (
	"fmt"
	"os"
	"path/filepath"
)

// Uninstall removes the kernelspec from where Install with the same options puts it, and returns
// its folder. That there is none is an error.
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
