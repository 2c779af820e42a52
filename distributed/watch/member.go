package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gonbatch/rundir"
)

// uplink is this rank's connection to a hub.
type uplink struct {
	rank   int
	link   *link
	kicked chan struct{}
	sent   uint64 // The number of the last collective that was reported.

	mu   sync.Mutex
	gone time.Time // When the hub was lost; zero if it is not.
	bye  bool
}

// beat is the time between two reports.
const beat = 500 * time.Millisecond

// dialHubs connects to the hubs, and gives panics a way to one.
func (w *Watch) dialHubs(ctx context.Context, places []place) error {
	me := hello{Rank: w.config.Rank, Host: w.config.Host, Process: thisProcess()}
	for rank := range min(hubs, len(places)) {
		if places[rank].Trouble != "" {
			return fmt.Errorf("rank %d can't listen: %s", rank, places[rank].Trouble)
		}
		if rank == w.config.Rank {
			continue
		}
		l, err := dial(ctx, places[rank].Addresses, w.key, me)
		if err != nil {
			return fmt.Errorf("reach rank %d: %w", rank, err)
		}
		w.links = append(w.links, &uplink{rank: rank, link: l, kicked: make(chan struct{}, 1)})
	}
	me.Crash = true
	crash, err := dial(ctx, places[w.links[0].rank].Addresses, w.key, me)
	if err != nil {
		return fmt.Errorf("reach rank %d: %w", w.links[0].rank, err)
	}
	return w.sendCrashes(crash)
}

// sendReports tells the hub what this rank does.
func (w *Watch) sendReports(l *uplink) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		state := w.state(l.sent)
		l.sent = state.Entered
		if err := l.link.send(report{State: &state}); err != nil {
			return // receiveOrders notices too.
		}
		select {
		case <-w.stop:
			return
		case <-ticker.C:
		case <-l.kicked:
		}
	}
}

// receiveOrders listens to the hub until it is gone.
func (w *Watch) receiveOrders(l *uplink) {
	for {
		var o order
		err := l.link.receive(&o)
		switch {
		case err != nil:
			l.mu.Lock()
			l.gone = time.Now()
			l.mu.Unlock()
			return
		case o.Verdict != nil:
			w.obey(o.Verdict, l)
		case o.Bye:
			l.mu.Lock()
			l.bye = true
			l.mu.Unlock()
		}
	}
}

// goodbye tells the hub that this rank's end is no failure.
func (l *uplink) goodbye() {
	l.mu.Lock()
	over := l.bye || !l.gone.IsZero()
	l.mu.Unlock()
	if over {
		return
	}
	_ = l.link.send(report{Bye: true}) // A hub that does not hear it has just ended too.
}

// watchHubs ends this rank by itself where no hub is left to tell it to.
func (w *Watch) watchHubs() {
	if w.hub != nil {
		return
	}
	ticker := time.NewTicker(beat / 2)
	defer ticker.Stop()
	for {
		select {
		case <-w.stop:
			return
		case now := <-ticker.C:
			if v := judge(now, w.withoutHubs(now), limits{hasty: w.config.Hasty}); v != nil {
				w.endAlone(v)
			}
		}
	}
}

// withoutHubs is what this rank knows when all hubs are gone; nil while one is there.
func (w *Watch) withoutHubs(now time.Time) []*peer {
	peers := []*peer{{rank: w.config.Rank, host: w.config.Host, state: w.state(0), heard: now}}
	for _, l := range w.links {
		l.mu.Lock()
		p := &peer{rank: l.rank, heard: now, gone: l.gone, bye: l.bye, state: State{Busy: w.busy.Load()}}
		l.mu.Unlock()
		if p.alive() {
			return nil
		}
		peers = append(peers, p)
	}
	return peers
}

// Fail ends all ranks because of this one, and says why. It does not return.
func (w *Watch) Fail(kind rundir.FailureKind, err error) {
	f := rundir.Failure{Kind: kind, Rank: w.config.Rank, Host: w.config.Host, Step: w.step.Load(), Error: err.Error()}
	if w.on.Load() {
		for _, l := range w.links {
			_ = l.link.send(report{Failure: &f})
		}
		if w.hub != nil {
			w.hub.fail(w.config.Rank, &f)
		}
		time.Sleep(endTime) // A hub's verdict ends the process.
	}
	w.endAlone(&verdict{Failure: f})
	time.Sleep(endTime) // Another goroutine is at it.
	w.config.Exit(exitCode)
}
