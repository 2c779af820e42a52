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
	size, err := wholeLines(f)
	if err == nil {
		err = shorten(f, size)
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

func shorten(f *os.File, size int64) error {
	info, err := f.Stat()
	if err != nil || info.Size() == size {
		return err
	}
	return f.Truncate(size)
}

// wholeLines returns the number of bytes up to the end of the last complete line.
func wholeLines(f io.ReadSeeker) (int64, error) {
	const block = 64 << 10
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	for buf := make([]byte, block); end > 0; {
		start := max(0, end-block)
		if _, err := f.Seek(start, io.SeekStart); err != nil {
			return 0, err
		}
		part := buf[:end-start]
		if _, err := io.ReadFull(f, part); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}
