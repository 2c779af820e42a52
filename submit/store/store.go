// Package store shares big files among run directories. A run directory has hard links to where its
// files come from. Where that is impossible, because the run root is on another file system, the
// links go to a store in the run root, which has each file once, named by its content. The package
// knows the hashes of unchanged files, too.
//
//	err := store.Of(dir).Link(program, dir.Program("train"))
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"gonbatch/internal/rundir"
)

// Store is a folder of big files, each there once and named by its content, that run directories
// have hard links to. The files are read-only, because a write would change all of these runs. It
// is for files that cannot be linked from where they are: from another file system, or another
// user's. It may be used by several processes at once.
type Store struct{ folder string }

// Of is the store beside a run directory.
func Of(dir rundir.Dir) Store { return In(dir.Root()) }

// In is the store of a run root.
func In(root string) Store { return Store{rundir.Store(root, os.Geteuid())} }

const (
	// storedSize is the size from which files are shared; for smaller ones a copy costs no more.
	storedSize = 1 << 20
	// storeAge is how long a file stays that no run has a link to, and copyAge is far longer than a
	// copy takes.
	storeAge, copyAge = 24 * time.Hour, time.Hour
	// storeAttempts bounds the attempts to link a file that is removed as it is found.
	storeAttempts = 3
)

// Link makes to the same file as from: by a hard link to it, by one to the store's copy, or as a
// copy of its own where the file system has no links. A symbolic link is followed.
func (s Store) Link(from, to string) error {
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	if err := os.Link(real, to); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if info.Size() < storedSize {
		return CopyFile(real, to)
	}
	for range storeAttempts {
		entry, err := s.provide(real, info)
		if err != nil {
			break // Another user's run root, say: there the run has a copy of its own.
		}
		if err := os.Link(entry, to); !errors.Is(err, fs.ErrNotExist) {
			if err == nil || errors.Is(err, fs.ErrExist) {
				return err
			}
			break
		}
	}
	return CopyFile(real, to)
}

// provide is the path of a file's copy in the store, which is made if it is not there.
func (s Store) provide(path string, info fs.FileInfo) (entry string, err error) {
	known, err := UserHashes()
	if err != nil {
		return "", err
	}
	hash, err := known.Of(path)
	if err != nil {
		return "", err
	}
	perm := info.Mode().Perm() &^ 0o222
	entry = filepath.Join(s.folder, fmt.Sprintf("%s-%o", hash, perm))
	if old, err := os.Lstat(entry); err == nil {
		if found, err := known.Of(entry); err == nil && found == hash && old.Mode() == perm {
			_ = known.Save() // It is a cache.
			return entry, nil
		}
		if err := os.Remove(entry); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	if err := s.add(path, entry, perm); err != nil {
		return "", err
	}
	_ = known.Save()
	return entry, nil
}

// add copies a file into the store, whole or not at all, with the rights perm. Another process may
// do the same at once.
func (s Store) add(path, entry string, perm fs.FileMode) error {
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(s.folder, "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	copied := filepath.Join(folder, "file")
	if err := errors.Join(CopyFile(path, copied), os.Chmod(copied, perm)); err != nil {
		return err
	}
	if os.Link(copied, entry) == nil {
		return nil
	}
	if _, err := os.Stat(entry); err == nil {
		return nil
	}
	return os.Rename(copied, entry) // A file system without links.
}

// Clean removes the files that no run has a link to any more, and what a killed process has left.
// Those of the last day stay: a submission may be about to link them, and the next one is likely to
// want them.
func (s Store) Clean(now time.Time) error { return s.clean(now, storeAge) }

// clean removes what has had no link for a while.
func (s Store) clean(now time.Time, age time.Duration) error {
	entries, err := os.ReadDir(s.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // Else another process cleans as well.
				errs = append(errs, err)
			}
			continue
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		keep := age
		if info.IsDir() {
			keep = copyAge // Another process may be filling it.
		}
		if !ok || !info.IsDir() && stat.Nlink > 1 || now.Sub(time.Unix(stat.Ctim.Unix())) < keep {
			continue
		}
		errs = append(errs, os.RemoveAll(filepath.Join(s.folder, e.Name())))
	}
	return errors.Join(errs...)
}
