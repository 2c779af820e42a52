package local

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"sync"
)

// messages takes what mpirun and the launchers of the ranks say themselves: it is shown, and
// appended to the scheduler's log. Several commands may write at the same time.
type messages struct {
	mu          sync.Mutex
	shown, kept lossy
	log         *os.File
}

// openMessages opens the scheduler's log.
func (s *start) openMessages() (*messages, error) {
	log, err := os.OpenFile(s.spec.RunDir.SchedulerLog(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &messages{shown: lossy{out: s.Err}, kept: lossy{out: log}, log: log}, nil
}

// Write never fails.
func (m *messages) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = m.shown.Write(p)
	return m.kept.Write(p)
}

// close closes the log, and prints a warning if it lacks output: some file systems report a full
// disk only now.
func (m *messages) close(w io.Writer) {
	if err := cmp.Or(m.kept.err, m.log.Close()); err != nil {
		fmt.Fprintf(w, "warning: a part of the output is in no log: %v\n", err)
	}
}
