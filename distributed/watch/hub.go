package watch

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gonbatch/distributed/network"
	"gonbatch/internal/rundir"
)

// hub watches all ranks. Rank 0's hub judges; rank 1's takes over if rank 0 has ended or is silent.
type hub struct {
	watch    *Watch
	listener *network.Listener
	kicked   chan struct{}
	heard    atomic.Int64 // The messages of other ranks.
	sent     uint64       // The number of this rank's last compared collective.

	mu       sync.Mutex
	looked   time.Time // When this hub last judged.
	told     *order    // The last order; nil if there was none.
	peers    []*peer
	links    map[int]*link
	ready    map[int]bool
	crashes  map[int]chan struct{} // Closed when the connection for a rank's panic has ended.
	compared *comparison
	disputed time.Time // When ranks were first found to disagree; zero if they never were.
	lonely   bool      // The log says that a rank works alone while others wait for it.
}

func newHub(w *Watch, l *network.Listener) *hub {
	h := &hub{watch: w, listener: l, kicked: make(chan struct{}, 1), links: map[int]*link{}, ready: map[int]bool{}, crashes: map[int]chan struct{}{}, compared: newComparison()}
	for rank := range w.config.Size {
		h.peers = append(h.peers, &peer{rank: rank, heard: time.Now()})
	}
	me := h.peers[w.config.Rank]
	who := w.hello()
	me.host, me.process = who.Host, who.Process
	return h
}

func (h *hub) hear(rank int, r report) {
	h.heard.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.peers[rank]
	p.heard = time.Now()
	switch {
	case r.State != nil:
		h.update(p, *r.State)
		if r.State.Problem != "" {
			notify(h.kicked)
		}
	case r.Failure != nil:
		p.failure = r.Failure
		notify(h.kicked)
	case r.Ready:
		h.ready[rank] = true
	case r.Bye:
		p.bye = true
	}
}

// update records a rank's state. The lock is held.
func (h *hub) update(p *peer, s State) {
	// After its connection broke, a rank repeats what may not have arrived.
	s.Recent = slices.DeleteFunc(s.Recent, func(c Collective) bool { return c.Number <= p.compared })
	if n := len(s.Recent); n > 0 {
		p.compared = s.Recent[n-1].Number
	}
	p.state = s
	h.compared.add(p)
	if h.compared.disputed != 0 && h.disputed.IsZero() {
		h.disputed = time.Now()
		notify(h.kicked)
	}
}

// disputeTime is how long ranks that disagree have to report, so that the hub can find out who is
// in the minority. It is several beats, because a busy machine may delay some ranks.
const disputeTime = 4 * beat

// decide returns the verdict, or nil. The lock is held.
func (h *hub) decide(now time.Time) *verdict {
	v := judge(now, h.peers, limits{h.watch.config.Stuck, h.watch.config.LauncherEndsAll})
	if v != nil && !h.peers[v.Failure.Rank].lost.IsZero() && mostLost(h.peers) {
		v = h.watch.cutOff("most ranks did not answer it")
	}
	if h.disputed.IsZero() || v == nil && now.Sub(h.disputed) < disputeTime && h.compared.heard() < len(h.peers) {
		return v
	}
	return h.compared.verdict() // The disagreement is the cause of any other failure.
}

// fail records a rank's own failure.
func (h *hub) fail(rank int, f *rundir.Failure) {
	h.mu.Lock()
	h.peers[rank].failure = f
	h.mu.Unlock()
	notify(h.kicked)
}

// look is the time between two judgements.
const look = 200 * time.Millisecond

// run judges until the watch ends.
func (h *hub) run() {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-h.watch.stop:
			return
		case <-h.kicked:
		case <-ticker.C:
		}
		if v, ranks := h.judge(time.Now()); v != nil {
			h.end(v, ranks)
		}
	}
}

// judge returns the verdict, if there is one, and what each rank is doing.
func (h *hub) judge(now time.Time) (*verdict, []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.compensatePause(now)
	for _, p := range h.peers {
		p.giveUp(now)
	}
	me := h.peers[h.watch.config.Rank]
	me.heard = now
	state := h.watch.state(h.sent)
	h.sent = state.Entered
	h.update(me, state)
	if !h.leads(now) {
		return nil, nil
	}
	v := h.decide(now)
	if v == nil {
		h.noteAlone(now)
		return nil, nil
	}
	ranks := make([]string, len(h.peers))
	for i, p := range h.peers {
		ranks[i] = p.describe(now)
	}
	return v, ranks
}

// noteAlone logs, once for each wait, that a rank which works alone has been missed for so long
// that it would otherwise count as stuck: if it hangs there, nothing else will say so. The lock is
// held.
func (h *hub) noteAlone(now time.Time) {
	missed, by := missedAlone(now, h.peers, h.watch.config.Stuck)
	if missed != nil && !h.lonely {
		fmt.Fprintf(h.watch.config.Log, "gonbatch: %s %s, and %s waits for it in %v: it may take as long as it needs\n",
			missed.name(), missed.describeAlone(now), by.name(), by.state.Current)
	}
	h.lonely = missed != nil
}

// shortPause is the longest pause of this process that needs no correction.
const shortPause = time.Second

// compensatePause corrects for a pause of this process, on a busy machine or because it was
// stopped: ranks are not blamed for messages that this hub could not receive. The lock is held.
func (h *hub) compensatePause(now time.Time) {
	pause := now.Sub(h.looked) - look
	first := h.looked.IsZero()
	h.looked = now
	if first || pause < shortPause {
		return
	}
	if !h.disputed.IsZero() {
		h.disputed = h.disputed.Add(pause)
	}
	for _, p := range h.peers {
		p.compensatePause(pause, now)
	}
}

// deputyAfter is how long rank 0 may be silent before rank 1 judges in its place. It is longer than
// the delays on a busy machine.
const deputyAfter = 5 * time.Second

// leads reports whether this hub judges. The lock is held.
func (h *hub) leads(now time.Time) bool {
	first := h.peers[0]
	return h.watch.config.Rank == 0 || !first.alive() || now.Sub(first.heard) > deputyAfter
}

// tellTime limits how long sending an order may take, so that a rank that doesn't read delays
// nobody.
const tellTime = time.Second

// tell sends an order to all connected ranks, and to those that connect later.
func (h *hub) tell(o order) {
	h.mu.Lock()
	h.told = &o
	links := slices.Collect(maps.Values(h.links))
	h.mu.Unlock()
	var group sync.WaitGroup
	for _, l := range links {
		group.Go(func() { _ = l.send(o) }) // A rank that doesn't get it is lost, or will be.
	}
	sent := make(chan struct{})
	go func() {
		group.Wait()
		close(sent)
	}()
	select {
	case <-sent:
	case <-time.After(tellTime):
	}
}

// waitReady waits until all reachable ranks have followed the order, or until the limit.
func (h *hub) waitReady(limit time.Duration, hurry <-chan struct{}) {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for !h.allReady() {
		select {
		case <-deadline.C:
			return
		case <-hurry:
			hurry = nil
			deadline.Reset(min(limit, hurryTime))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (h *hub) allReady() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for rank := range h.links {
		if p := h.peers[rank]; !h.ready[rank] && p.alive() && !p.silent(now) {
			return false
		}
	}
	return true
}

// goodbye tells the other ranks that the end of this hub is not a failure. It waits for ranks whose
// connection is lost, because they are told when they reconnect.
func (h *hub) goodbye() {
	h.tell(order{Bye: true})
	for deadline := time.Now().Add(goodbyeTime); h.awaitsRanks() && time.Now().Before(deadline); {
		time.Sleep(firstPause)
	}
}

// awaitsRanks reports whether a rank may still reconnect.
func (h *hub) awaitsRanks() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.peers, (*peer).unreachable)
}

// close closes the hub's connections.
func (h *hub) close() {
	h.listener.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.links {
		l.close()
	}
}
