package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// InProcess connects n ranks in this process, without a port: pairs of sockets are their
// connections. It is for tests, whose goroutines are the ranks. Everything after the rendezvous is
// the same as over a network, but only one of the ranks can have a Transport.
func InProcess(n int) ([]*Comm, error) {
	if n < 1 {
		return nil, fmt.Errorf("tcp: InProcess(%d): there must be at least 1 rank", n)
	}
	from, to, err := ringOfPairs(n)
	if err != nil {
		return nil, fmt.Errorf("tcp: InProcess(%d): %w", n, err)
	}
	p := &pairs{waiting: map[way]net.Conn{}, closed: map[int]bool{}}
	comms := make([]*Comm, n)
	for rank := range comms {
		c := Config{Rank: rank, Size: n, Timeout: defaultTimeout}
		ctx, cancel := context.WithCancel(context.Background())
		comms[rank] = newComm(c, from[rank], to[rank])
		comms[rank].direct = newDirect(c, &pairing{pairs: p, rank: rank, ctx: ctx, cancel: cancel})
	}
	return comms, nil
}

// ringOfPairs returns each rank's connections to the previous and to the next one.
func ringOfPairs(n int) (from, to []net.Conn, err error) {
	from, to = make([]net.Conn, n), make([]net.Conn, n)
	for rank := range n {
		next := (rank + 1) % n
		if to[rank], from[next], err = pair(); err != nil {
			for i := range rank {
				to[i].Close()
				from[i+1].Close()
			}
			return nil, nil, err
		}
	}
	return from, to, nil
}

// way is the direction from one rank to another.
type way struct{ from, to int }

// pairs has the second ends of direct connections, until the ranks that they are for ask for them.
type pairs struct {
	mu      sync.Mutex
	waiting map[way]net.Conn
	closed  map[int]bool // The ranks that have left.
}

// connect returns a rank's end of its connection to another one. Whoever comes first makes both.
func (p *pairs) connect(w way) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if conn := p.waiting[w]; conn != nil {
		delete(p.waiting, w)
		return conn, nil
	}
	if p.closed[w.from] || p.closed[w.to] {
		return nil, fmt.Errorf("reach rank %d: %w", w.to, net.ErrClosed)
	}
	mine, theirs, err := pair()
	if err != nil {
		return nil, fmt.Errorf("reach rank %d: %w", w.to, err)
	}
	p.waiting[way{w.to, w.from}] = theirs
	return mine, nil
}

// leave closes the ends that wait for a rank.
func (p *pairs) leave(rank int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed[rank] = true
	for w, conn := range p.waiting {
		if w.from == rank {
			conn.Close()
			delete(p.waiting, w)
		}
	}
}

// pairing is a rank's maker.
type pairing struct {
	pairs  *pairs
	rank   int
	ctx    context.Context
	cancel context.CancelFunc
}

func (p *pairing) one(_ context.Context, rank int) (net.Conn, error) {
	return p.pairs.connect(way{p.rank, rank})
}

func (p *pairing) context() context.Context { return p.ctx }

func (p *pairing) close() {
	p.cancel()
	p.pairs.leave(p.rank)
}

// pair returns the two ends of a connection. Like one of TCP's, it takes some data without waiting
// for its reader, and pipes of package net don't.
func pair() (a, b net.Conn, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	a, errA := connOf(ends[0])
	b, errB := connOf(ends[1])
	if err := errors.Join(errA, errB); err != nil {
		for _, conn := range []net.Conn{a, b} {
			if conn != nil {
				conn.Close()
			}
		}
		return nil, nil, err
	}
	return a, b, nil
}

// connOf takes over a socket.
func connOf(fd int) (net.Conn, error) {
	file := os.NewFile(uintptr(fd), "pair of sockets")
	defer file.Close() //nolint:errcheck // the connection is a copy
	return net.FileConn(file)
}
