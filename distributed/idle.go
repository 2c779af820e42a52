package distributed

import (
	"sync"

	"github.com/gomlx/compute"
)

// idle are the backends of worlds that were closed, by what they were opened with. The variables
// that a world has trained stay on its backend, and GoMLX refuses them on another one, so the next
// world of this process takes the same one.
var idle struct {
	sync.Mutex
	backends map[string]compute.Backend
}

// takeIdle returns an idle backend; nil if there is none.
func takeIdle(openedWith string) compute.Backend {
	idle.Lock()
	defer idle.Unlock()
	found := idle.backends[openedWith]
	delete(idle.backends, openedWith)
	return found
}

// leaveBackend makes the world's backend idle. If XLA connects the ranks, its backend ends with the
// world.
func (w *World) leaveBackend() {
	if w.openedWith == "" || w.backend == nil {
		return
	}
	idle.Lock()
	defer idle.Unlock()
	if idle.backends == nil {
		idle.backends = map[string]compute.Backend{}
	}
	idle.backends[w.openedWith] = w.backend
}
