package kernel

import (
	"sync"
	"time"

	"gonbatch/kernel/relay"
)

const (
	// underWay is how many bytes of a command's output may be on their way to the clients.
	underWay = 8 << 20
	// pacePatience is how long a command waits while nothing arrives. Then it continues: the count
	// may be wrong.
	pacePatience = time.Minute
)

// pace makes a command wait while too much of its output is on the way to the clients. Its methods
// may be called concurrently.
type pace struct {
	passed func() (uint64, error)
	limit  uint64

	mu   sync.Mutex
	off  bool
	base uint64
	sent uint64
}

// newPace starts counting. Without a folder for cells, nothing waits.
func newPace(cellDir string) *pace {
	p := &pace{passed: func() (uint64, error) { return relay.Passed(cellDir) }, limit: underWay}
	var err error
	p.base, err = p.passed()
	p.off = err != nil || cellDir == ""
	return p
}

// wait waits until n more bytes may be sent.
func (p *pace) wait(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent += uint64(n)
	last, since := uint64(0), time.Now()
	for !p.off {
		passed, err := p.passed()
		if err != nil || p.sent <= passed-p.base+p.limit {
			return
		}
		if passed != last {
			last, since = passed, time.Now()
		}
		if time.Since(since) > pacePatience {
			p.off = true
		}
		time.Sleep(time.Millisecond)
	}
}
