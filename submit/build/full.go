package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gonbatch/submit/store"
)

// full reports whether a build failed because a disk is full. The go command says so only in its
// output.
func full(err error) bool {
	var failed *Error
	if errors.As(err, &failed) {
		return strings.Contains(failed.Output, syscall.ENOSPC.Error()) || strings.Contains(failed.Output, syscall.EDQUOT.Error())
	}
	return store.IsFull(err)
}

// fullError adds the size of our programs on the disk to the error.
func fullError(err error, root string) error {
	return fmt.Errorf("%w\nthe programs of earlier notebooks in %s take %s, and runs refer to all of them: "+
		"remove old run directories, or choose another folder with XDG_CACHE_HOME; the go command also writes to GOCACHE and to TMPDIR",
		err, root, store.SizeText(store.FolderSize(root)))
}

// makeRoom removes the builds that no run links to, and reports whether there were any. It skips
// builds that another process has locked.
func makeRoom(root string) (freed bool) {
	before := store.FolderSize(root)
	entries, _ := os.ReadDir(root) // Builds that cannot be read, or removed, stay.
	for _, entry := range entries {
		if dir := filepath.Join(root, entry.Name()); entryName.MatchString(entry.Name()) && !linked(dir) {
			_ = removeBuild(dir)
		}
	}
	return store.FolderSize(root) < before
}

// linked reports whether a file in the folder has another hard link.
func linked(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err != nil || slices.ContainsFunc(entries, func(entry fs.DirEntry) bool {
		info, err := entry.Info()
		if err != nil {
			return true
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		return !ok || stat.Nlink > 1
	})
}
