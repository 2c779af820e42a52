package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Protect takes all rights on what lies in d from other users: the notebook and its options may
// hold what is theirs alone. A file that has another name elsewhere is shared with a cache, and
// keeps its own rights; the folder keeps others from it.
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
