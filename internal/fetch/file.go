package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// WriteFile writes all of r to path, as Write does.
func WriteFile(path string, r io.Reader, size int64, sum string) error {
	return Write(path, size, sum, func(w io.Writer) error {
		if _, err := io.Copy(w, r); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		return nil
	})
}

// Write writes what write writes to path atomically: into a temporary file beside it, which is
// synced, checked and renamed. A wrong size or SHA-256 is an error and leaves path unchanged, as an
// error of write does; a size of 0 and an empty sum are not checked.
func Write(path string, size int64, sum string, write func(io.Writer) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	hash := sha256.New()
	if err := write(io.MultiWriter(tmp, hash)); err != nil {
		return errors.Join(err, tmp.Close())
	}
	n, err := tmp.Seek(0, io.SeekCurrent)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := compare(path, n, size, hex.EncodeToString(hash.Sum(nil)), sum); err != nil {
		return err
	}
	return commit(tmp.Name(), path)
}

// Verify returns an error if the file at path has another size or SHA-256; a size of 0 and an empty
// sum are not checked. It reads the whole file.
func Verify(path string, size int64, sum string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	hash := sha256.New()
	n, err := io.Copy(hash, f)
	if err != nil {
		return err
	}
	return compare(path, n, size, hex.EncodeToString(hash.Sum(nil)), sum)
}

func compare(path string, n, wantSize int64, sum, wantSum string) error {
	if wantSize > 0 && n != wantSize {
		return fmt.Errorf("%w: %s has %d bytes, not %d", ErrChecksum, path, n, wantSize)
	}
	if wantSum != "" && !strings.EqualFold(sum, wantSum) {
		return fmt.Errorf("%w: %s has SHA-256 %s, not %s", ErrChecksum, path, sum, wantSum)
	}
	return nil
}

// commit renames a complete, synced file to its final path and syncs the folder, so that the file
// survives a power failure.
func commit(tmp, path string) error {
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // only read
	_ = dir.Sync()    // Some file systems refuse to sync a folder; the file itself is safe.
	return nil
}
