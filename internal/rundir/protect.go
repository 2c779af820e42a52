package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Protect removes all permissions of other users on the files in d, because the notebook and its
// options may be private. A file with a second name is shared with a cache and keeps its
// permissions: the folder protects it.
func (d Dir) Protect() error {
	err := filepath.WalkDir(d.path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() && !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !entry.IsDir() && (!ok || stat.Nlink > 1) {
			return nil
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			return os.Chmod(path, mode&0o700)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("protect run %s: %w", d.Name(), err)
	}
	return nil
}
