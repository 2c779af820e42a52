package tcp

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"gonbatch/distributed/network"
	"gonbatch/internal/plural"
)

// direct has the connections between ranks that need not be neighbors. They are made when a
// collective first needs them.
type direct struct {
	config Config
	maker  maker
	conns  map[int]net.Conn // By rank.
}

// maker makes direct connections.
type maker interface {
	// one makes the connection to a rank, which calls its own maker for it.
	one(ctx context.Context, rank int) (net.Conn, error)
	// context ends when the maker is closed.
	context() context.Context
	close()
}

func newDirect(c Config, m maker) *direct {
	return &direct{config: c, maker: m, conns: map[int]net.Conn{}}
}

// connect makes the missing connections to these ranks.
func (d *direct) connect(ranks []int) error {
	ctx, cancel := context.WithTimeout(d.maker.context(), d.config.Timeout)
	defer cancel()
	var group sync.WaitGroup
	made, errs := make([]net.Conn, len(ranks)), make([]error, len(ranks))
	for i, rank := range ranks {
		if rank != d.config.Rank && d.conns[rank] == nil {
			group.Go(func() { made[i], errs[i] = d.maker.one(ctx, rank) })
		}
	}
	group.Wait()
	for i, rank := range ranks {
		if made[i] != nil {
			d.conns[rank] = made[i]
		}
	}
	return errors.Join(errs...)
}

// close closes the connections.
func (d *direct) close() {
	d.maker.close()
	for _, conn := range d.conns {
		conn.Close()
	}
}

// dialer makes connections over the network: of two ranks, the lower one connects to the higher
// one.
type dialer struct {
	config    Config
	key       network.Key
	addresses func() ([][]string, error) // By rank.
	listener  *network.Listener

	mu      sync.Mutex
	arrived map[int]chan net.Conn // By rank: those that have connected to this one.
}

func newDialer(c Config, l *network.Listener, r reply) *dialer {
	d := &dialer{config: c, key: r.Key.For("direct"), listener: l, arrived: map[int]chan net.Conn{}}
	d.addresses = sync.OnceValues(func() (all [][]string, err error) { return all, json.Unmarshal(r.All, &all) })
	go l.Serve(d.key, d.accept)
	return d
}

// accept takes a connection, which begins with the other rank's number.
func (d *dialer) accept(conn net.Conn) {
	number := make([]byte, 8)
	conn.SetReadDeadline(time.Now().Add(memberTime))
	if _, err := io.ReadFull(conn, number); err != nil {
		conn.Close()
		return
	}
	conn.SetReadDeadline(time.Time{})
	select {
	case d.from(int(binary.LittleEndian.Uint64(number))) <- conn:
	case <-d.listener.Context().Done():
		conn.Close()
	}
}

// from returns the channel for a rank's connection.
func (d *dialer) from(rank int) chan net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.arrived[rank] == nil {
		d.arrived[rank] = make(chan net.Conn, 1)
	}
	return d.arrived[rank]
}

// one makes the connection to a rank.
func (d *dialer) one(ctx context.Context, rank int) (net.Conn, error) {
	if rank < d.config.Rank {
		select {
		case conn := <-d.from(rank):
			return conn, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("rank %d did not connect within %v: %w", rank, d.config.Timeout, ctx.Err())
		}
	}
	all, err := d.addresses()
	if err != nil || rank >= len(all) {
		return nil, fmt.Errorf("reach rank %d: rank 0 sent the addresses of %s: %w", rank, plural.Of(len(all), "rank"), err)
	}
	conn, err := network.DialUntil(ctx, all[rank], d.key)
	if err != nil {
		return nil, fmt.Errorf("reach rank %d at %v: %w", rank, all[rank], err)
	}
	if _, err := conn.Write(binary.LittleEndian.AppendUint64(nil, uint64(d.config.Rank))); err != nil {
		conn.Close()
		return nil, fmt.Errorf("reach rank %d at %v: %w", rank, all[rank], err)
	}
	return conn, nil
}

func (d *dialer) context() context.Context { return d.listener.Context() }

func (d *dialer) close() { d.listener.Close() }
