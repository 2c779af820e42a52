package relay

import (
	"context"
	"time"

	"gonbatch/kernel/wire"
)

// interruptPause is the time between two looks for processes that an interrupted cell has started
// since.
const interruptPause = 50 * time.Millisecond

// setRunning makes a cell the running one. From now on it can be interrupted.
func (r *relay) setRunning(request *wire.Message) {
	r.runningMu.Lock()
	defer r.runningMu.Unlock()
	r.running, r.ended = request, false
	r.interrupted.Store(false)
	r.status(request, "busy")
}

func (r *relay) isRunning() bool {
	r.runningMu.Lock()
	defer r.runningMu.Unlock()
	return r.running != nil
}

// setIdle ends a request. If a cell is still running, it publishes that again, because clients show
// the last status that they receive.
func (r *relay) setIdle(request *wire.Message) {
	r.runningMu.Lock()
	defer r.runningMu.Unlock()
	r.status(request, "idle")
	if r.running == request {
		r.running, r.ended = nil, false
	}
	if r.running != nil {
		r.status(r.running, "busy")
	}
}

// interrupt ends the running cell, if there is one. If the cell has no process at the moment,
// because it is being composed or its process was just ending, its next process is interrupted as
// soon as it starts. A freshly started GoNB would die of an interrupt, so it is spared: when a
// client restarts a dead kernel, the new kernel may get an interrupt that was meant for the dead
// one.
func (r *relay) interrupt() {
	r.runningMu.Lock()
	defer r.runningMu.Unlock()
	if r.ended {
		return
	}
	r.interrupted.Store(r.running != nil)
	again := r.interruptor()
	again()
	if r.running != nil {
		go r.insist(r.running, again)
	} else {
		r.opts.Settle()
	}
}

// finish ends a cell. If it was interrupted, it first waits until GoNB has noticed all interrupts.
// GoNB answers a request only after that: its answer is the last thing to wait for.
func (r *relay) finish(ctx context.Context, cell *wire.Message) {
	defer r.setIdle(cell)
	r.runningMu.Lock()
	r.ended = true // From now on nothing is interrupted.
	interrupted := r.interrupted.Load()
	r.runningMu.Unlock()
	if !interrupted || ctx.Err() != nil {
		return
	}
	r.opts.Settle()
	if ask, err := wire.New("kernel_info_request", struct{}{}); err == nil {
		r.callBack(ctx, ask, ask.Content, nil)
	}
}

// interruptor returns a function whose first call interrupts GoNB and everything it has started.
// Later calls interrupt what has started since, and then GoNB.
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

// insist interrupts a cell until it has ended. The lock keeps the next cell from beginning in
// between.
func (r *relay) insist(cell *wire.Message, again func()) {
	for {
		time.Sleep(interruptPause)
		r.runningMu.Lock()
		if r.running != cell || r.ended {
			r.runningMu.Unlock()
			return
		}
		again()
		r.runningMu.Unlock()
	}
}
