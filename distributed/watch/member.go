package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"gonbatch/distributed/network"
	"gonbatch/internal/rundir"
)

// beat is the time between two reports.
const beat = 500 * time.Millisecond

// startTime limits how long this rank tries to connect to the hubs. It grows with the number of
// ranks, which delay one another.
func (w *Watch) startTime() time.Duration {
	return 15*time.Second + time.Duration(w.config.Size)*50*time.Millisecond
}

// connectDelay returns how long this rank waits before it connects to the hubs: only some ranks
// connect at the same time, so that a hub is not overwhelmed by a thousand.
func (w *Watch) connectDelay() time.Duration {
	return time.Duration(w.config.Rank/64) * 10 * time.Millisecond
}

// hubKey is the key that ranks and a hub prove to each other.
func (w *Watch) hubKey(rank int) network.Key { return w.key.For(fmt.Sprintf("hub %d", rank)) }

func (w *Watch) hello() hello {
	process, _ := rundir.ThisProcess() // Without /proc, no rank can kill this one if it is stuck.
	return hello{Rank: w.config.Rank, Host: w.config.Host, Process: process}
}

// dialHubs connects to the hubs, and opens a connection for the text of panics.
func (w *Watch) dialHubs(ctx context.Context, places []place) error {
	ctx, cancel := context.WithTimeout(ctx, w.startTime())
	defer cancel()
	time.Sleep(w.connectDelay())
	for rank := range min(hubs, len(places)) {
		if places[rank].Trouble != "" {
			return fmt.Errorf("rank %d can't listen: %s", rank, places[rank].Trouble)
		}
		if rank == w.config.Rank {
			continue
		}
		found, err := w.openPatiently(ctx, rank, places[rank].Addresses, w.hello())
		if err != nil {
			return fmt.Errorf("reach rank %d: %w", rank, err)
		}
		l := &uplink{rank: rank, addresses: places[rank].Addresses, kicked: make(chan struct{}, 1)}
		l.use(found)
		w.links = append(w.links, l)
	}
	first := w.links[0]
	crash, err := w.openPatiently(ctx, first.rank, first.addresses, w.crashHello())
	if err != nil {
		return fmt.Errorf("reach rank %d: %w", first.rank, err)
	}
	return w.sendCrashes(crash)
}

// openPatiently calls open again if the hub is there, but too busy.
func (w *Watch) openPatiently(ctx context.Context, rank int, addresses []string, who hello) (*link, error) {
	for {
		l, err := w.open(ctx, rank, addresses, who)
		busy := ended(err) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ECONNRESET)
		if err == nil || !busy || ctx.Err() != nil {
			return l, err
		}
		time.Sleep(firstPause)
	}
}

// sendReports sends this rank's state to the hub while the connection is the current one.
func (w *Watch) sendReports(l *uplink, current *link) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for sent := uint64(0); l.current() == current; {
		state := w.state(sent)
		sent = state.Entered
		if err := current.send(report{State: &state}); err != nil {
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

// receiveOrders follows the hub's orders until the connection ends, and returns the reason.
func (w *Watch) receiveOrders(l *uplink, current *link) error {
	for {
		var o order
		err := current.receive(&o)
		switch {
		case err != nil:
			return err
		case o.Verdict != nil:
			w.followVerdict(o.Verdict, l.rank, current)
		case o.Bye:
			l.mu.Lock()
			l.bye = true
			l.mu.Unlock()
		}
	}
}

// watchHubs ends this rank if no hub is left to do it.
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
			peers := w.withoutHubs(now)
			v := judge(now, peers, limits{hasty: w.config.LauncherEndsAll})
			if v != nil && slices.ContainsFunc(peers, func(p *peer) bool { return !p.lost.IsZero() && !p.bye }) {
				v = w.cutOff("ranks 0 and 1 did not answer it")
			}
			if v != nil {
				w.endAlone(v)
			}
		}
	}
}

// cutOff is the verdict of a rank that can't reach the others. It blames only this rank, because
// the others may be healthy.
func (w *Watch) cutOff(seen string) *verdict {
	return &verdict{Failure: rundir.Failure{Kind: rundir.Died, Rank: w.config.Rank, Host: w.config.Host, Step: w.step.Load(),
		Error: fmt.Sprintf("%s for %v: its machine is cut off from theirs", seen, redialTime)}}
}

// withoutHubs returns what this rank knows when all hubs are gone, or nil while there is a hub.
func (w *Watch) withoutHubs(now time.Time) []*peer {
	peers := []*peer{{rank: w.config.Rank, host: w.config.Host, state: w.state(0), heard: now}}
	for _, l := range w.links {
		p := l.state(now)
		if p.alive() {
			return nil
		}
		p.state.Busy = w.busy.Load()
		peers = append(peers, p)
	}
	return peers
}

// Fail ends all ranks because of an error on this one. It does not return.
func (w *Watch) Fail(kind rundir.FailureKind, err error) {
	f := rundir.Failure{Kind: kind, Rank: w.config.Rank, Host: w.config.Host, Step: w.step.Load(), Error: err.Error()}
	if w.on.Load() {
		for _, l := range w.links {
			_ = l.send(report{Failure: &f})
		}
		if w.hub != nil {
			w.hub.fail(w.config.Rank, &f)
		}
		time.Sleep(endTime) // A hub's verdict ends the process.
	}
	w.endAlone(&verdict{Failure: f})
	time.Sleep(endTime) // Another goroutine may be ending the process.
	w.config.Exit(exitCode)
}
