package local

import (
	"fmt"
	"io"
)

// lossy writes to a log. It drops text that doesn't fit on a full disk, because an error would give
// the programs a broken pipe and end them.
type lossy struct {
	out io.Writer
	err error // The first error.
}

// Write never fails.
func (l *lossy) Write(p []byte) (int, error) {
	if _, err := l.out.Write(p); err != nil && l.err == nil {
		l.err = err
	}
	return len(p), nil
}

// warn prints a warning if the log lacks output.
func (l *lossy) warn(w io.Writer) {
	if l.err != nil {
		fmt.Fprintf(w, "warning: a part of the output is in no log: %v\n", l.err)
	}
}
