package local

import "io"

// lossy drops what it cannot write, and remembers the first error: text that doesn't fit on a full
// disk, or whose reader is gone, as in "submit ... | head". An error of Write would give the
// programs a broken pipe and end them, or keep the text out of the logs.
type lossy struct {
	out io.Writer
	err error
}

// Write never fails.
func (l *lossy) Write(p []byte) (int, error) {
	if _, err := l.out.Write(p); err != nil && l.err == nil {
		l.err = err
	}
	return len(p), nil
}
