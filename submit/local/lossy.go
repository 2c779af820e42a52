package local

import (
	"fmt"
	"io"
)

// lossy writes to a log. What a full disk does not take is lost: it must not end the programs,
// which would get a broken pipe.
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

// warn says what the log lacks.
func (l *lossy) warn(w io.Writer) {
	if l.err != nil {
		fmt.Fprintf(w, "warning: a part of the output is in no log: %v\n", l.err)
	}
}
