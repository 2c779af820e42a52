package source

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gonbatch"
)

// Hash returns the SHA-256, in hexadecimal, of a library's file names and contents. Tests and their
// data do not count.
func Hash(library fs.FS) (string, error) {
	names, err := files(library)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range names {
		data, err := fs.ReadFile(library, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%q %d\n", name, len(data))
		sum.Write(data)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// HashDir returns a hash that shows whether the library in a folder has changed. The folder may be
// a checkout with many other files, or one returned by Dir. The latter has its Hash in its name and
// is read-only, so its files are not read again.
func HashDir(dir string) (string, error) {
	if hash, ok := writtenHash(dir); ok {
		return hash, nil
	}
	entries, err := fs.ReadDir(gonbatch.Library, ".")
	if err != nil {
		return "", err
	}
	root := os.DirFS(dir)
	sum := sha256.New()
	for _, entry := range entries {
		if _, err := fs.Stat(root, entry.Name()); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		hash, err := hashEntry(root, entry)
		if err != nil {
			return "", fmt.Errorf("gonbatch's source in %s: %w", dir, err)
		}
		fmt.Fprintf(sum, "%s %s\n", entry.Name(), hash)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// writtenHash returns the hash in the name of a folder that Dir has written.
func writtenHash(dir string) (string, bool) {
	hash := filepath.Base(dir)
	if filepath.Base(filepath.Dir(dir)) != folder || len(hash) != nameLength {
		return "", false
	}
	_, err := hex.DecodeString(hash)
	return hash, err == nil
}

// hashEntry returns the hash of one top-level folder or file.
func hashEntry(root fs.FS, entry fs.DirEntry) (string, error) {
	if !entry.IsDir() {
		data, err := fs.ReadFile(root, entry.Name())
		return fmt.Sprintf("%x", sha256.Sum256(data)), err
	}
	sub, err := fs.Sub(root, entry.Name())
	if err != nil {
		return "", err
	}
	return Hash(sub)
}

// files returns the names of the library's files that a build needs, sorted.
func files(library fs.FS) ([]string, error) {
	var names []string
	err := fs.WalkDir(library, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path.Base(name) == "testdata" || len(name) > 1 && path.Base(name)[0] == '.'):
			return fs.SkipDir
		case !entry.IsDir() && !strings.HasSuffix(name, "_test.go"):
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}
