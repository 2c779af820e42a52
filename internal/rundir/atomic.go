package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFileAtomic writes a whole file or changes nothing: it writes a temporary file, syncs it and
// renames it. Readers on any node see either the old content or the new, never a part.
func WriteFileAtomic(path string, data []byte, perm fs.FileMode) error {
	tmp, err := writeBeside(path, data, perm)
	if err == nil {
		if err = os.Rename(tmp, path); err != nil {
			err = errors.Join(err, os.Remove(tmp))
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// writeBeside writes a temporary file in the folder of path.
func writeBeside(path string, data []byte, perm fs.FileMode) (name string, err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	if err := fill(tmp, data, perm); err != nil {
		return "", errors.Join(err, os.Remove(tmp.Name()))
	}
	return tmp.Name(), nil
}

// fill writes, syncs and closes f; it closes f on failure too.
func fill(f *os.File, data []byte, perm fs.FileMode) (err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(perm); err != nil {
		return err
	}
	return f.Sync()
}

// appendLine appends a line of values to a file, and creates the file if necessary.
func appendLine(path string, values ...any) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, values...)
	return errors.Join(err, f.Close())
}
