package logger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"gonbatch/internal/rundir"
)

// openLines opens a file of lines to append to it, and makes it if it is missing. A last line
// without its end is what a process that ended while it wrote has left: it is removed.
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

// replaceLines gives a file of lines new content, as a whole, and opens it to append instead of the
// old one.
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

// wholeLines is the number of bytes up to the end of the last whole line.
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
