package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner has f, which is new or about to take the place of the file at path, leave the run to
// whom it belongs. What root writes into a user's folder becomes that user's. Another user with
// write rights there cannot give files away, but leaves the rights on the file as they were: else
// its owner could not read it any more. A file system that refuses either keeps what it has.
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
		return perm | fs.FileMode(old.Mode)&0o007 // Its group's rights would be another group's.
	}
	return perm | fs.FileMode(old.Mode)&fs.ModePerm
}

// openOwned opens the file at path, or makes it: for its owner, as keepOwner has it. A file that is
// there keeps its owner: it may be a link to anybody's.
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

// statOf is the owner, the group and the rights in what the file system says of a file.
func statOf(info fs.FileInfo, err error) (*syscall.Stat_t, bool) {
	if err != nil {
		return nil, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return stat, ok
}
