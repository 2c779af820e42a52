package folder

import (
	"errors"
	"io"
)

// Verify reads a whole checkpoint and compares the checksums of its files.
func Verify(path string) error {
	c, err := Open(path)
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range c.Files {
		errs = append(errs, c.Read(file.Name, func(io.Reader, int64) error { return nil }))
	}
	return errors.Join(append(errs, c.Close())...)
}
