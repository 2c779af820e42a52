package local

import (
	"errors"
	"io"
	"syscall"
)

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
