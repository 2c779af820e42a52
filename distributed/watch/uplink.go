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

// uplink is this rank's connection to a hub. It is restored when it breaks.
type uplink struct {
	rank   int
	kicked chan struct{}

	mu        sync.Mutex
	addresses []string  // The last one that worked comes first.
	link      *link     // The current one, or the last.
	lost      time.Time // When it broke; zero while it is connected, or if the hub's process has ended.
	gone      time.Time // When the hub's process ended; zero if it has not.
	bye       bool
}

// redialTime is how long a broken connection may take to be restored before the other side counts
// as gone.
const redialTime = 30 * time.Second

// open opens the connection and sends the first message.
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

// keep serves the uplink, and restores it when it breaks, until the watch or the hub ends.
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

// end records that the connection is broken, and reports whether the hub has ended.
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

// The pauses between attempts to reconnect, and the limit of one attempt.
const (
	firstPause  = 50 * time.Millisecond
	longPause   = 2 * time.Second
	attemptTime = 5 * time.Second
)

// refusals is how many times in a row a machine must refuse a connection before the hub's process
// counts as ended.
const refusals = 5

// redial reconnects. It reports false if the hub or the watch has ended.
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
			l.gone, l.lost = time.Now(), time.Time{} // When the connection broke, it was still there.
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

// attempt tries the address that last worked, and then the others. It returns the first address's
// error, because the others may lead to other machines.
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

// state returns what this rank knows about the hub.
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

// goodbyeTime is how long a rank that ends waits for a lost connection, to send its goodbye.
const goodbyeTime = 3 * time.Second

// goodbye tells all hubs that the end of this rank is not a failure.
func (w *Watch) goodbye() {
	var group sync.WaitGroup
	for _, l := range w.links {
		group.Go(l.goodbye)
	}
	group.Wait()
}

// goodbye tells the hub that the end of this rank is not a failure.
func (l *uplink) goodbye() {
	for deadline := time.Now().Add(goodbyeTime); l.state(time.Now()).alive(); {
		if l.send(report{Bye: true}) == nil || time.Now().After(deadline) {
			return
		}
		time.Sleep(firstPause)
	}
}
