package local

import (
	"io"
	"os"
	"sync"
)

// messages takes what mpirun and the launchers of the ranks say themselves: it is shown, and
// appended to the scheduler's log. Several commands may write at the same time.
type messages struct {
	mu   sync.Mutex
	all  io.Writer
	kept *lossy
}

// openMessages opens the scheduler's log.
func (s *start) openMessages() (*messages, error) {
	log, err := os.OpenFile(s.spec.RunDir.SchedulerLog(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	kept := &lossy{out: log}
	return &messages{all: io.MultiWriter(&screen{out: s.Err}, kept), kept: kept}, nil
}

// Write never fails.
func (m *messages) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.Write(p)
}

// close closes the log.
func (m *messages) close(w io.Writer) { m.kept.close(w) }
