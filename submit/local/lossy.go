package local

import (
	"cmp"
	"fmt"
	"io"
)

// lossy writes to a log. It drops text that doesn't fit on a full disk, because an error would give
// the programs a broken pipe and end them.
type lossy struct {
	out io.WriteCloser
	err error // The first error.
}

// Write never fails.
func (l *lossy) Write(p []byte) (int, error) {
	if _, err := l.out.Write(p); err != nil && l.err == nil {
		l.err = err
	}
	return len(p), nil
}

// close closes the log, and prints a warning if it lacks output: some file systems report a full
// disk only now.
func (l *lossy) close(w io.Writer) {
	l.err = cmp.Or(l.err, l.out.Close())
	if l.err != nil {
		fmt.Fprintf(w, "warning: a part of the output is in no log: %v\n", l.err)
	}
}
