package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner lets a run stay with its owner: f is new, or about to replace the file at path. A file
// that root writes into a user's folder gets that user as its owner. Another user who may write
// there can't give files away, so the file keeps the permissions that it had, or its owner could no
// longer read it. File system errors are ignored.
func keepOwner(f *os.File, path string, perm fs.FileMode) fs.FileMode {
	self := os.Geteuid()
	folder, ok := statOf(os.Stat(filepath.Dir(path)))
	switch {
	case !ok || int(folder.Uid) == self:
		return perm
	case self == 0:
		_ = f.Chown(int(folder.Uid), int(folder.Gid))
		return perm
	}
	old, ok := statOf(os.Lstat(path))
	if !ok || int(old.Uid) == self {
		return perm
	}
	if f.Chown(-1, int(old.Gid)) != nil {
		return perm | fs.FileMode(old.Mode)&0o007 // The permissions of its group would go to another group.
	}
	return perm | fs.FileMode(old.Mode)&fs.ModePerm
}

// openOwned opens the file at path, or creates it for the owner of the folder. An existing file
// keeps its owner, because it may be a link to anyone's file.
func openOwned(path string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|os.O_CREATE|os.O_EXCL, perm)
	if errors.Is(err, fs.ErrExist) {
		return os.OpenFile(path, flag|os.O_CREATE, perm)
	}
	if err == nil {
		keepOwner(f, path, perm)
	}
	return f, err
}

// appendLine appends a line of values to a file, and creates the file if necessary.
func appendLine(path string, values ...any) error {
	f, err := openOwned(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, values...)
	return errors.Join(err, f.Close())
}

// statOf returns the owner, group and permissions in the file system's information about a file.
func statOf(info fs.FileInfo, err error) (*syscall.Stat_t, bool) {
	if err != nil {
		return nil, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return stat, ok
}
