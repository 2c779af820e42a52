package main

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

// store is a folder of big files, each there once and named by its content, that run directories
// have hard links to. It is for files that cannot be linked from where they are: from another file
// system, or another user's. It may be used by several processes at once.
type store struct{ folder string }

// storeOf is the store beside a run directory.
func storeOf(dir rundir.Dir) store { return store{rundir.Store(dir.Root(), os.Geteuid())} }

const (
	// storedSize is the size from which files are shared; for smaller ones a copy costs no more.
	storedSize = 1 << 20
	// storeAge is how long a file stays that no run has a link to.
	storeAge = 24 * time.Hour
	// storeAttempts bounds the attempts to link a file that is removed as it is found.
	storeAttempts = 3
)

// link makes to the same file as from: by a hard link to it, by one to the store's copy, or as a
// copy of its own where the file system has no links. A symbolic link is followed.
func (s store) link(from, to string) error {
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
		return copyFile(real, to)
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
	return copyFile(real, to)
}

// provide is the path of a file's copy in the store, which is made if it is not there.
func (s store) provide(path string, info fs.FileInfo) (entry string, err error) {
	known, err := userHashes()
	if err != nil {
		return "", err
	}
	hash, err := known.of(path)
	if err != nil {
		return "", err
	}
	entry = filepath.Join(s.folder, fmt.Sprintf("%s-%o", hash, info.Mode().Perm()))
	if old, err := os.Lstat(entry); err == nil {
		if old.Size() == info.Size() && old.Mode() == info.Mode() {
			return entry, nil
		}
		if err := os.Remove(entry); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return entry, errors.Join(s.add(path, entry), known.save())
}

// add copies a file into the store, whole or not at all. Another process may do the same at once.
func (s store) add(path, entry string) error {
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(s.folder, "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	copied := filepath.Join(folder, "file")
	if err := copyFile(path, copied); err != nil {
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

// clean removes the files that no run has a link to any more, and what a killed process has left.
// Those of the last day stay: a submission may be about to link them, and the next one is likely to
// want them.
func (s store) clean(now time.Time) error {
	entries, err := os.ReadDir(s.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // Another process cleans as well.
		}
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || !info.IsDir() && stat.Nlink > 1 || now.Sub(time.Unix(stat.Ctim.Unix())) < storeAge {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.folder, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
