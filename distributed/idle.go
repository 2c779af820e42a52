package distributed

import (
	"sync"

	"github.com/gomlx/compute"
)

// idle has the backends of worlds that were closed, by what they were opened with. The variables
// that a world has trained stay on its backend, and GoMLX refuses them on another one, so the next
// world of this process takes the same one.
var idle sync.Map

// takeIdle returns an idle backend; nil if there is none.
func takeIdle(openedWith string) compute.Backend {
	found, _ := idle.LoadAndDelete(openedWith)
	backend, _ := found.(compute.Backend)
	return backend
}

// leaveBackend makes the world's backend idle. If XLA connects the ranks, its backend ends with the
// world.
func (w *World) leaveBackend() {
	if w.openedWith != "" && w.backend != nil {
		idle.Store(w.openedWith, w.backend)
	}
}
