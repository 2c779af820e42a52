package relay

import (
	"time"

	"gonbatch/kernel/wire"
)

// interruptPause is between two looks for what an interrupted cell has started since.
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
// is being composed, or whose process was at its end, is ended when it has the next. GoNB that has
// just been started would end of it, so it waits: a client that restarts a dead kernel has asked
// the dead one to interrupt, and the new one hears of it.
func (r *relay) interrupt() {
	r.runningMu.Lock()
	defer r.runningMu.Unlock()
	r.interrupted.Store(r.running != nil)
	again := r.interruptor()
	again()
	if r.running != nil {
		go r.insist(r.running, again)
	}
}

// interruptor interrupts GoNB each time that it is called, and the first time all it has started.
func (r *relay) interruptor() func() {
	var again func()
	return func() {
		select {
		case <-r.ready:
		default:
			return
		}
		if again == nil {
			again = r.opts.Interrupt()
			return
		}
		again()
	}
}

// insist interrupts a cell until it has ended. The lock keeps the next cell from beginning
// meanwhile.
func (r *relay) insist(cell *wire.Message, again func()) {
	for {
		time.Sleep(interruptPause)
		r.runningMu.Lock()
		if r.running != cell {
			r.runningMu.Unlock()
			return
		}
		again()
		r.runningMu.Unlock()
	}
}
