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

	"gonbatch/distributed/network"
)

// direct has the connections to other ranks. Those to the neighbors are made first, the others when
// a collective first needs them. Of two ranks, the lower one connects to the higher one.
type direct struct {
	config    Config
	key       network.Key
	next      []string                   // The addresses of the next rank.
	addresses func() ([][]string, error) // Those of all ranks.
	listener  *network.Listener
	conns     map[int]net.Conn // By rank.

	mu      sync.Mutex
	arrived map[int]chan net.Conn // By rank: those that have connected to this one.
}

func newDirect(c Config, l *network.Listener, r reply) *direct {
	d := &direct{config: c, key: r.Key, next: r.Next, listener: l, conns: map[int]net.Conn{}, arrived: map[int]chan net.Conn{}}
	d.addresses = sync.OnceValues(func() (all [][]string, err error) { return all, json.Unmarshal(r.All, &all) })
	go l.Serve(d.keyOf(c.Rank), d.accept)
	return d
}

// keyOf returns the key for connections to a rank: an address may lead to another rank of the job.
func (d *direct) keyOf(rank int) network.Key { return d.key.For(fmt.Sprintf("to rank %d", rank)) }

// connect makes the missing connections to these ranks, each of which does so too.
func (d *direct) connect(ctx context.Context, ranks []int) error {
	var group sync.WaitGroup
	made, errs := make([]net.Conn, len(ranks)), make([]error, len(ranks))
	for i, rank := range ranks {
		if rank != d.config.Rank && d.conns[rank] == nil {
			group.Go(func() { made[i], errs[i] = d.one(ctx, rank) })
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
	d.listener.Close()
	for _, conn := range d.conns {
		conn.Close()
	}
}

// accept takes a connection, which begins with the other rank's number: it may reach this rank in
// several ways, and uses one.
func (d *direct) accept(conn net.Conn) {
	number, over := make([]byte, 8), d.listener.Context()
	stop := context.AfterFunc(over, func() { conn.Close() })
	if _, err := io.ReadFull(conn, number); err != nil || !stop() {
		conn.Close()
		return
	}
	select {
	case d.from(int(binary.LittleEndian.Uint64(number))) <- conn:
	case <-over.Done():
		conn.Close()
	}
}

// from returns the channel for a rank's connection.
func (d *direct) from(rank int) chan net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.arrived[rank] == nil {
		d.arrived[rank] = make(chan net.Conn)
	}
	return d.arrived[rank]
}

// one makes the connection to a rank.
func (d *direct) one(ctx context.Context, rank int) (net.Conn, error) {
	if rank < d.config.Rank {
		select {
		case conn := <-d.from(rank):
			return conn, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("rank %d did not connect within %v: %w", rank, d.config.Timeout, ctx.Err())
		}
	}
	addresses, err := d.addressesOf(rank)
	if err != nil {
		return nil, err
	}
	conn, err := network.DialUntil(ctx, addresses, d.keyOf(rank))
	if err != nil {
		return nil, fmt.Errorf("reach rank %d at %v: %w", rank, addresses, err)
	}
	if _, err := conn.Write(binary.LittleEndian.AppendUint64(nil, uint64(d.config.Rank))); err != nil {
		conn.Close()
		return nil, fmt.Errorf("reach rank %d at %v: %w", rank, addresses, err)
	}
	return conn, nil
}

func (d *direct) addressesOf(rank int) ([]string, error) {
	if rank == d.config.Rank+1 {
		return d.next, nil
	}
	all, err := d.addresses()
	if err != nil {
		return nil, fmt.Errorf("reach rank %d: the addresses that rank 0 sent: %w", rank, err)
	}
	return all[rank], nil
}
