package local

import (
	"io"
	"time"

	"gonbatch/submit"
)

// logTail shows a log as it grows, from its current end on: earlier cells have shown the rest.
type logTail struct {
	tail *submit.Tail
	out  io.Writer
}

func newLogTail(path string, out io.Writer) (*logTail, error) {
	t := &logTail{tail: submit.NewTail(path), out: out}
	_, err := t.tail.Copy(io.Discard)
	return t, err
}

// start shows new text until the returned function is called, which shows the rest.
func (t *logTail) start() (stop func() error) {
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- t.loop(end) }()
	return func() error {
		close(end)
		return <-ended
	}
}

func (t *logTail) loop(end <-chan struct{}) error {
	ticker := time.NewTicker(logInterval)
	defer ticker.Stop()
	for {
		select {
		case <-end:
			_, err := t.tail.Copy(t.out)
			return err
		case <-ticker.C:
			if _, err := t.tail.Copy(t.out); err != nil {
				<-end
				return err
			}
		}
	}
}
