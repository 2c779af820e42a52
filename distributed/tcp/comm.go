package tcp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gonbatch/distributed/network"
)

// Comm is this rank's place in the ring. Its methods are collective: all ranks must call them in
// the same order. They may be called from any goroutine, but only one at a time.
//
// Ranks whose collectives differ fail, unless they wait for one another on different connections:
// little data to reduce, and the groups of programs, may have their own. Package watch ends these.
type Comm struct {
	rank, size int
	world      *team   // All ranks.
	teams      []*team // Groups that have been used.
	direct     *direct
	mu         sync.Mutex
	scratch    []byte
	closed     bool
	broken     error // The first failure; nil if there was none.
}

// newComm connects this rank, which listens for the others, to its neighbours. Two ranks have two
// connections, so that in the ring each of them moves data in one direction: that is faster.
func newComm(ctx context.Context, c Config, l *network.Listener, r reply) (*Comm, error) {
	comm := &Comm{rank: c.Rank, size: c.Size, direct: newDirect(c, l, r)}
	t := worldTeam(comm)
	previous, next := t.at(-1), t.at(1)
	from, to := previous, next
	switch {
	case c.Size == 2 && c.Rank == 0:
		from += c.Size
	case c.Size == 2:
		to += c.Size
	}
	if err := comm.direct.connect(ctx, []int{from, to}); err != nil {
		comm.direct.close()
		return nil, err
	}
	t.from, t.to = link{previous, comm.direct.conns[from]}, link{next, comm.direct.conns[to]}
	comm.world = t
	return comm, nil
}

// Rank returns this process's number, from 0 to Size()-1.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of ranks.
func (c *Comm) Size() int { return c.size }

// ErrClosed is the error of a collective on a closed Comm.
var ErrClosed = errors.New("the ring is closed")

// do runs one collective at a time and names the rank in its error. After a failure the ring can't
// be used again: some ranks may still be in the middle of the collective, and would mistake the
// bytes of the next one for it. The connections are closed, so that all ranks fail.
func (c *Comm) do(name string, f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.run(f); err != nil {
		return fmt.Errorf("tcp: rank %d of %d: %s: %w", c.rank, c.size, name, err)
	}
	return nil
}

func (c *Comm) run(f func() error) error {
	switch {
	case c.closed:
		return ErrClosed
	case c.broken != nil:
		return fmt.Errorf("an earlier collective failed: %w", c.broken)
	}
	if c.broken = f(); c.broken != nil {
		c.direct.close()
	}
	return c.broken
}

// buffer returns scratch memory of n bytes.
func (c *Comm) buffer(n int) []byte {
	if cap(c.scratch) < n {
		c.scratch = make([]byte, n)
	}
	return c.scratch[:n]
}

// connect makes the direct connections to ranks that this one has none to. It is collective over
// all ranks: each names those that it needs, and for which groups.
func (c *Comm) connect(ranks []int, groups uint32) error {
	// When a checksum from every rank has arrived, all ranks are here, and nobody waits in vain.
	sums := make([]uint32, c.size)
	if err := c.world.gather(typeInt32, bytesOf([]uint32{groups}), bytesOf(sums)); err != nil {
		return err
	}
	for rank, sum := range sums {
		if sum != groups {
			return fmt.Errorf("rank %d divides the ranks into other groups: all ranks must name the same groups, in the same order", rank)
		}
	}
	ctx, cancel := context.WithTimeout(c.direct.listener.Context(), c.direct.config.Timeout)
	defer cancel()
	return c.direct.connect(ctx, ranks)
}

// Broadcast replaces the data on every rank with the root's. All ranks must pass the same length.
func (c *Comm) Broadcast(data []byte, root int) error {
	if root < 0 || root >= c.size {
		return fmt.Errorf("tcp: rank %d of %d: broadcast: the root %d is not a rank", c.rank, c.size, root)
	}
	return c.do("broadcast", func() error { return c.world.broadcast(typeUint8, data, root) })
}

// AllGather returns the data of every rank, in order of rank. All ranks must pass the same length.
func (c *Comm) AllGather(data []byte) ([][]byte, error) {
	flat := make([]byte, len(data)*c.size)
	if err := c.do("all-gather", func() error { return c.world.gather(typeUint8, data, flat) }); err != nil {
		return nil, err
	}
	all := make([][]byte, c.size)
	for i := range all {
		all[i] = flat[i*len(data) : (i+1)*len(data) : (i+1)*len(data)]
	}
	return all, nil
}

// Barrier returns when all ranks have called it.
func (c *Comm) Barrier() error {
	// When a byte from every rank has arrived, all ranks have called Barrier.
	_, err := c.AllGather([]byte{1})
	return err
}

// Close leaves the ring. A second call does nothing.
func (c *Comm) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	c.direct.close()
	return nil
}
