package local

import (
	"errors"
	"io"
	"syscall"
)

// screen shows what the programs print. One that is gone, as in "submit ... | head", must not end
// them before they are told to stop, nor keep anything out of the logs, so it takes what it cannot
// show and remembers why.
type screen struct {
	out io.Writer
	err error // The first error, unless the reader is just gone.
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
