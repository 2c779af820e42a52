package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// earlierPrefix begins the names of folders for checkpoints that were set aside.
const earlierPrefix = "earlier-"

// SetAside moves all checkpoints of a folder to a new folder in it, "earlier-1" or the next free
// number. It returns the new folder's path, or "" if there are no checkpoints. It moves the oldest
// first, so that the newest one stays the newest if SetAside is interrupted.
func SetAside(root string) (string, error) {
	paths, err := candidates(root)
	if err != nil || len(paths) == 0 {
		return "", err
	}
	to, err := makeEarlier(root)
	if err != nil {
		return "", fmt.Errorf("checkpoint: set the checkpoints in %s aside: %w", root, err)
	}
	for _, path := range slices.Backward(paths) {
		if err := os.Rename(path, filepath.Join(to, filepath.Base(path))); err != nil {
			return "", fmt.Errorf("checkpoint: set %s aside: %w", path, err)
		}
	}
	return to, errors.Join(syncFolder(to), syncFolder(root))
}

func makeEarlier(root string) (string, error) {
	for n := 1; ; n++ {
		path := filepath.Join(root, fmt.Sprintf("%s%d", earlierPrefix, n))
		if err := os.Mkdir(path, 0o777); !errors.Is(err, fs.ErrExist) {
			return path, err
		}
	}
}
