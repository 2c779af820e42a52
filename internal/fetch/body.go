package fetch

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

func count(n int64) string {
	if n < 0 {
		return "an unknown number of"
	}
	return strconv.FormatInt(n, 10)
}

// fileWriter marks write errors as local ones, as opposed to the network's.
type fileWriter struct{ f *os.File }

func (w fileWriter) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	if err != nil {
		err = diskError{err}
	}
	return n, err
}

// stallReader cancels the request when no bytes arrive for a while.
type stallReader struct {
	r     io.Reader
	after time.Duration
	timer *time.Timer
}

func newStallReader(r io.Reader, after time.Duration, cancel context.CancelCauseFunc) *stallReader {
	stalled := fmt.Errorf("no data for %v", after)
	return &stallReader{r, after, time.AfterFunc(after, func() { cancel(stalled) })}
}

func (s *stallReader) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if n > 0 {
		s.timer.Reset(s.after)
	}
	return n, err
}

func (s *stallReader) stop() { s.timer.Stop() }
