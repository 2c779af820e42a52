package logger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"gonbatch/internal/rundir"
)

// openLines opens a file of lines for appending, and creates it if it is missing. It removes an
// incomplete last line, left by a process that ended while writing.
func openLines(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	if whole := bytes.LastIndexByte(text, '\n') + 1; err == nil && whole < len(text) {
		err = f.Truncate(int64(whole))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("remove the half-written last line of %s: %w", path, err), f.Close())
	}
	return f, nil
}

// replaceLines atomically replaces the content of a file of lines, and opens the file for appending
// instead of the old one.
func replaceLines(path string, content []byte, old *os.File) (*os.File, error) {
	if err := rundir.WriteFileAtomic(path, content, 0o644); err != nil {
		return old, err
	}
	f, err := openLines(path)
	if err != nil {
		return old, err
	}
	return f, old.Close()
}
