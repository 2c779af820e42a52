package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// sweep removes the files that killed processes left, and completes interrupted replacements and
// removals. It returns errors about what can't be removed.
func sweep(root string) (litter []error, _ error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if err := sweepOne(root, entry.Name()); err != nil {
			litter = append(litter, fmt.Errorf("checkpoint: remove what a killed process left: %w", err))
		}
	}
	return litter, nil
}

func sweepOne(root, name string) error {
	for _, prefix := range []string{savingPrefix, removingPrefix, replacedPrefix} {
		final, ok := strings.CutPrefix(name, prefix)
		if _, isStep := stepOf(final); !ok || !isStep {
			continue
		}
		if prefix == replacedPrefix {
			if _, err := os.Lstat(filepath.Join(root, final)); errors.Is(err, fs.ErrNotExist) {
				return os.Rename(filepath.Join(root, name), filepath.Join(root, final))
			}
		}
		return os.RemoveAll(filepath.Join(root, name))
	}
	return nil
}

// IsLink reports whether a checkpoint's folder is a symbolic link, which Remove refuses.
func IsLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// Remove removes the checkpoint of a step. If the process is killed meanwhile, no partial
// checkpoint is left under its name. Remove refuses anything that isn't a checkpoint, including a
// link.
func Remove(root string, step int64) error {
	path := filepath.Join(root, Name(step))
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("checkpoint: remove: %w", err)
	}
	if !info.IsDir() || !ours(path) {
		return fmt.Errorf("checkpoint: remove %s: it isn't a checkpoint's folder", path)
	}
	removing := aside(root, removingPrefix, step)
	if err := errors.Join(os.RemoveAll(removing), os.Rename(path, removing), os.RemoveAll(removing)); err != nil {
		return fmt.Errorf("checkpoint: remove %s: %w", path, err)
	}
	return nil
}
