package local

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"syscall"
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

// screen shows the programs' output. If its reader is gone, as in "submit ... | head", that must
// neither end the programs before they are told to stop nor keep anything out of the logs. So
// screen drops text that it cannot show and remembers the error.
type screen struct {
	out io.Writer
	err error // The first error, unless only the reader is gone.
	off bool
}

// Write never fails.
func (s *screen) Write(p []byte) (int, error) {
	if s.off {
		return len(p), nil
	}
	if _, err := s.out.Write(p); err != nil {
		s.off = true
		if !errors.Is(err, syscall.EPIPE) {
			s.err = err
		}
	}
	return len(p), nil
}
