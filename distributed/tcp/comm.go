package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Comm is this rank's place in the ring. Its methods are collective: all ranks must call them in
// the same order. They may be called from any goroutine, but only one at a time.
type Comm struct {
	rank, size int
	from, to   net.Conn // The previous and the next rank.
	mu         sync.Mutex
	scratch    []byte
	closed     bool
	broken     error // The first failure; nil if there was none.
}

func newComm(c Config, from, to net.Conn) *Comm {
	return &Comm{rank: c.Rank, size: c.Size, from: from, to: to}
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
		_ = c.hangUp() // c.broken has the reason.
	}
	return c.broken
}

// hangUp closes the connections.
func (c *Comm) hangUp() error { return errors.Join(c.to.Close(), c.from.Close()) }

// atOnce is how many bytes a connection always takes without waiting for its reader, if everything
// sent before has been read. If each rank first sends so few and then receives, they can't all wait
// for one another: a rank waits only for one that is behind it.
const atOnce = 4 << 10

// exchange sends to the next rank while it receives from the previous one.
func (c *Comm) exchange(send, receive []byte) error {
	if len(send) <= atOnce {
		if err := c.send(send); err != nil {
			return err
		}
		return c.receive(receive)
	}
	sent := make(chan error, 1)
	go func() { sent <- c.send(send) }()
	err := c.receive(receive)
	if err != nil {
		c.to.Close() // The next rank may not be reading. It will fail anyway.
	}
	return errors.Join(err, <-sent)
}

// receive fills the data from the previous rank.
func (c *Comm) receive(data []byte) error {
	if _, err := io.ReadFull(c.from, data); err != nil {
		return fmt.Errorf("receive from rank %d: %w", c.neighbour(-1), err)
	}
	return nil
}

// send sends the data to the next rank.
func (c *Comm) send(data []byte) error {
	if _, err := c.to.Write(data); err != nil {
		return fmt.Errorf("send to rank %d: %w", c.neighbour(1), err)
	}
	return nil
}

func (c *Comm) neighbour(step int) int { return (c.rank + step + c.size) % c.size }

// buffer returns scratch memory of n bytes.
func (c *Comm) buffer(n int) []byte {
	if cap(c.scratch) < n {
		c.scratch = make([]byte, n)
	}
	return c.scratch[:n]
}

// agree compares the kind and length of a collective with the previous rank's, so that ranks that
// disagree fail instead of mixing up bytes.
func (c *Comm) agree(kind byte, length int) error {
	mine := binary.LittleEndian.AppendUint64([]byte{kind}, uint64(length))
	theirs := make([]byte, len(mine))
	if err := c.exchange(mine, theirs); err != nil {
		return err
	}
	if string(mine) != string(theirs) {
		return fmt.Errorf("rank %d calls collective %q of %d bytes here: all ranks must call the same one, in the same order", c.neighbour(-1),
			theirs[0], binary.LittleEndian.Uint64(theirs[1:]))
	}
	return nil
}

// Broadcast replaces the data on every rank with the root's. All ranks must pass the same length.
func (c *Comm) Broadcast(data []byte, root int) error {
	if root < 0 || root >= c.size {
		return fmt.Errorf("tcp: rank %d of %d: broadcast: the root %d is not a rank", c.rank, c.size, root)
	}
	return c.do("broadcast", func() error {
		if err := c.agree('b', len(data)); err != nil {
			return err
		}
		if c.rank != root {
			if err := c.receive(data); err != nil {
				return err
			}
		}
		if c.neighbour(1) != root {
			return c.send(data)
		}
		return nil
	})
}

// AllGather returns the data of every rank, in order of rank. All ranks must pass the same length.
func (c *Comm) AllGather(data []byte) ([][]byte, error) {
	flat := make([]byte, len(data)*c.size)
	if err := c.gather(data, flat); err != nil {
		return nil, err
	}
	all := make([][]byte, c.size)
	for i := range all {
		all[i] = flat[i*len(data) : (i+1)*len(data) : (i+1)*len(data)]
	}
	return all, nil
}

// gather puts the data of all ranks into `into`, in order of rank.
func (c *Comm) gather(data, into []byte) error {
	return c.do("all-gather", func() error {
		if err := c.agree('g', len(data)); err != nil {
			return err
		}
		part := func(step int) []byte {
			i := c.neighbour(step)
			return into[i*len(data) : (i+1)*len(data)]
		}
		copy(part(0), data)
		if c.size >= chainRanks && len(into) <= maxGathered {
			return c.gatherChain(into, len(data))
		}
		for step := range c.size - 1 {
			if err := c.exchange(part(-step), part(-step-1)); err != nil {
				return err
			}
		}
		return nil
	})
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
	if c.broken != nil {
		return nil // The connections are closed already.
	}
	return c.hangUp()
}
