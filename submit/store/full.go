package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"syscall"
	"time"
)

// IsFull reports whether an error says that a disk or the user's quota is full.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// MakeRoom removes every file that no run links to, however new, and reports whether there was one.
// A submission that was about to link such a file copies it again.
func (s Store) MakeRoom(now time.Time) (freed bool) {
	before := FolderSize(s.folder)
	_ = s.clean(now, math.MinInt64) // Files that cannot be removed stay.
	return FolderSize(s.folder) < before
}

// FullError adds the size of the store to the error of a full disk.
func (s Store) FullError(err error) error {
	if size := FolderSize(s.folder); size > 0 {
		err = fmt.Errorf("%w\nthe runs in %s share %s in %s", err, filepath.Dir(s.folder), SizeText(size), s.folder)
	}
	return fmt.Errorf("%w\nremove run directories that you no longer need, or choose another folder on the shared file system with --run-root", err)
}

// FolderSize returns the total size of the files in a folder.
func FolderSize(folder string) (size int64) {
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read counts nothing
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return size
}

// SizeText returns a size in MB or GB.
func SizeText(bytes int64) string {
	const mega = 1 << 20
	if bytes < 1000*mega {
		return fmt.Sprintf("%d MB", (bytes+mega-1)/mega)
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/(1<<30))
}
