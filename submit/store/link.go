package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// LinkFolder links the files of a folder into another, which it creates if necessary.
func LinkFolder(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		file, link := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if os.Link(file, link) == nil {
			continue
		}
		if err := CopyFile(file, link); err != nil { // As between file systems.
			return err
		}
	}
	return nil
}

// CopyFile copies a file, with its permissions, to a path that must not exist.
func CopyFile(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // only read
	info, err := source.Stat()
	if err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if _, err := io.Copy(target, source); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return target.Sync()
}
