package watch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	"gonbatch/distributed/network"
)

// uplink is this rank's connection to a hub. It is made again when it breaks.
type uplink struct {
	rank   int
	kicked chan struct{}

	mu        sync.Mutex
	addresses []string  // The one that led to the hub last comes first.
	link      *link     // The current one, or the last.
	lost      time.Time // When it broke; zero while it is there, or if the hub's process ended.
	gone      time.Time // When that ended; zero if it did not.
	bye       bool
}

// redialTime is how long a connection that breaks may take to be there again before the other side
// counts as gone.
const redialTime = 30 * time.Second

// open makes the connection and says who is there.
func (w *Watch) open(ctx context.Context, rank int, addresses []string, who hello) (*link, error) {
	conn, err := network.Dial(ctx, addresses, w.hubKey(rank))
	if err != nil {
		return nil, err
	}
	l := newLink(conn)
	if err := errors.Join(tune(conn), l.send(who)); err != nil {
		l.abort()
		return nil, err
	}
	return l, nil
}

// keep serves the uplink, and makes it again when it breaks, until the watch or the hub ends.
func (w *Watch) keep(l *uplink) {
	for {
		current := l.current()
		if w.over() {
			current.close()
			return
		}
		go w.sendReports(l, current)
		finished := current.finished(w.receiveOrders(l, current))
		current.abort()
		if w.over() || l.end(finished) || !w.redial(l) {
			return
		}
	}
}

func (l *uplink) current() *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.link
}

// end notes that the connection is broken, and reports whether that is the end of the hub.
func (l *uplink) end(finished bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if finished {
		l.gone = time.Now()
	} else {
		l.lost = time.Now()
	}
	return l.bye || finished
}

// The pauses between two attempts to connect again, and the time of one.
const (
	firstPause  = 50 * time.Millisecond
	longPause   = 2 * time.Second
	attemptTime = 5 * time.Second
)

// refusals is how often in a row a machine must answer that nobody listens there before its process
// counts as ended.
const refusals = 5

// redial connects again. It reports whether there is a connection: not where the hub or the watch
// has ended.
func (w *Watch) redial(l *uplink) bool {
	refused := 0
	for pause := firstPause; !w.over(); pause = min(2*pause, longPause) {
		err := w.attempt(l)
		if err == nil {
			return true
		}
		if refused++; !errors.Is(err, syscall.ECONNREFUSED) {
			refused = 0
		}
		if refused == refusals {
			l.mu.Lock()
			l.gone, l.lost = l.lost, time.Time{}
			l.mu.Unlock()
			return false
		}
		select {
		case <-w.stop:
		case <-time.After(pause):
		}
	}
	return false
}

// attempt tries the address that led to the hub last, and then all. The error is the first one's:
// at the others may be anybody.
func (w *Watch) attempt(l *uplink) error {
	ctx, cancel := context.WithTimeout(context.Background(), attemptTime)
	defer cancel()
	who := w.hello()
	found, err := w.open(ctx, l.rank, l.addresses[:1], who)
	if err != nil && len(l.addresses) > 1 {
		if other, otherErr := w.open(ctx, l.rank, l.addresses[1:], who); otherErr == nil {
			found, err = other, nil
		}
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.use(found)
	l.mu.Unlock()
	if l == w.links[0] {
		w.reopenCrash(l)
	}
	return nil
}

// use makes the connection the current one. The lock is held.
func (l *uplink) use(found *link) {
	l.link, l.lost = found, time.Time{}
	good := found.conn.RemoteAddr().String()
	l.addresses = append([]string{good}, slices.DeleteFunc(l.addresses, func(a string) bool { return a == good })...)
}

// state is what this rank knows of the hub.
func (l *uplink) state(now time.Time) *peer {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &peer{rank: l.rank, heard: now, lost: l.lost, gone: l.gone, bye: l.bye}
	p.giveUp(now)
	return p
}

// send sends a message if there is a connection.
func (l *uplink) send(message any) error {
	l.mu.Lock()
	current, lost := l.link, !l.lost.IsZero() || !l.gone.IsZero()
	l.mu.Unlock()
	if lost {
		return errLost
	}
	return current.send(message)
}

var errLost = errors.New("the connection is lost")

// goodbyeTime is how long a rank that ends waits for a lost connection, to say so.
const goodbyeTime = 3 * time.Second

// goodbye tells all hubs that this rank's end is no failure.
func (w *Watch) goodbye() {
	var group sync.WaitGroup
	for _, l := range w.links {
		group.Go(l.goodbye)
	}
	group.Wait()
}

// goodbye tells the hub that this rank's end is no failure.
func (l *uplink) goodbye() {
	for deadline := time.Now().Add(goodbyeTime); l.state(time.Now()).alive(); {
		if l.send(report{Bye: true}) == nil || time.Now().After(deadline) {
			return
		}
		time.Sleep(firstPause)
	}
}
