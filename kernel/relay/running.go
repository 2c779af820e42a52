package relay

import (
	"time"

	"gonbatch/kernel/wire"
)

// interruptPause is how often an interrupt is repeated until it reaches a process of the cell.
const interruptPause = 50 * time.Millisecond

// setRunning makes a cell the one that runs. From now on it can be interrupted.
func (r *relay) setRunning(request *wire.Message) {
	r.runningMu.Lock()
	defer r.runningMu.Unlock()
	r.running = request
	r.interrupted.Store(false)
	r.status(request, "busy")
}

func (r *relay) isRunning() bool {
	r.runningMu.Lock()
	defer r.runningMu.Unlock()
	return r.running != nil
}

// setIdle ends a request. If a cell runs beside it clients are told so again: they show the last
// status that they hear.
func (r *relay) setIdle(request *wire.Message) {
	r.runningMu.Lock()
	defer r.runningMu.Unlock()
	r.status(request, "idle")
	if r.running == request {
		r.running = nil
	}
	if r.running != nil {
		r.status(r.running, "busy")
	}
}

// interrupt ends the cell that runs, if there is one. One that has no process just then, because it
// is being composed, is ended when it has.
func (r *relay) interrupt() {
	r.runningMu.Lock()
	cell := r.running
	r.interrupted.Store(cell != nil)
	r.runningMu.Unlock()
	if !r.opts.Interrupt() && cell != nil {
		go r.insist(cell)
	}
}

func (r *relay) insist(cell *wire.Message) {
	for {
		time.Sleep(interruptPause)
		r.runningMu.Lock()
		ended := r.running != cell
		r.runningMu.Unlock()
		if ended || r.opts.Interrupt() {
			return
		}
	}
}
