// Package store shares big files among run directories. A run directory has hard links to its
// source files. If the run root is on another file system, the links go to a store in the run root,
// which has each file once, named by its content. The package also caches the hashes of unchanged
// files.
//
//	err := store.In(dir.Root(), cache).Link(program, dir.Program("train"))
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

// Store is a folder of big files that run directories hard-link to; each file is there once, named
// by its content. The files are read-only, because a write would change all of these runs. The
// store is for files that cannot be linked directly: those on another file system, or another
// user's. Several processes may use it concurrently.
type Store struct{ folder, cache string }

// In returns the store of a run root. cache is the folder with the hashes of files.
func In(root, cache string) Store { return Store{rundir.Store(root, os.Geteuid()), cache} }

const (
	// storedSize is the minimum size of shared files; copying smaller ones costs no more.
	storedSize = 1 << 20
	// storeAge is how long a file without links from runs stays, and copyAge is far longer than a
	// copy takes.
	storeAge, copyAge = 24 * time.Hour, time.Hour
	// storeAttempts bounds the attempts to link a file that another process removes at the same
	// time.
	storeAttempts = 3
)

// Link creates to as a hard link to from, as a hard link to the store's copy, or as a copy if the
// file system has no links. It follows symbolic links.
func (s Store) Link(from, to string) error {
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	if err := os.Link(real, to); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return s.Keep(real, to)
}

// Keep is Link for a file that somebody may write to later, such as an installed program: to is a
// hard link to the store's copy, or a copy.
func (s Store) Keep(from, to string) error {
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
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
			break // For example in another user's run root: there the run has its own copy.
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

// provide returns the path of a file's copy in the store, which it creates if necessary.
func (s Store) provide(path string, info fs.FileInfo) (entry string, err error) {
	if err := rundir.CheckPrivate(s.folder); err != nil {
		return "", err
	}
	known := HashesIn(s.cache)
	hash, err := known.Of(path)
	if err != nil {
		return "", err
	}
	perm := info.Mode().Perm() &^ 0o222
	entry = filepath.Join(s.folder, fmt.Sprintf("%s-%o", hash, perm))
	if old, err := os.Lstat(entry); err == nil {
		if found, err := known.Of(entry); err == nil && found == hash && old.Mode() == perm {
			_ = known.Save() // It is only a cache.
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

// add copies a file into the store, atomically, with the permissions perm. Another process may do
// the same concurrently.
func (s Store) add(path, entry string, perm fs.FileMode) error {
	if err := errors.Join(os.MkdirAll(s.folder, 0o700), rundir.CheckPrivate(s.folder)); err != nil {
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
	return os.Rename(copied, entry) // The file system has no links.
}

// Clean removes files that no run links to any longer, and the remains of killed processes. Files
// of the last day stay: a submission may be about to link them, and the next one is likely to need
// them.
func (s Store) Clean(now time.Time) error { return s.clean(now, storeAge) }

// clean removes files that have had no link for the time age.
func (s Store) clean(now time.Time, age time.Duration) error {
	if err := rundir.CheckPrivate(s.folder); err != nil {
		return err
	}
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
			if !errors.Is(err, fs.ErrNotExist) { // Otherwise another process is cleaning too.
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
