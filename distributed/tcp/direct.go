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
	conns     map[int]net.Conn // By rank; a second one to the same rank by that plus the size.

	mu      sync.Mutex
	arrived map[int]chan net.Conn // Those that others have made, likewise.
}

func newDirect(c Config, l *network.Listener, r reply) *direct {
	d := &direct{config: c, key: r.Key, next: r.Next, listener: l, conns: map[int]net.Conn{}, arrived: map[int]chan net.Conn{}}
	d.addresses = sync.OnceValues(func() (all [][]string, err error) { return all, json.Unmarshal(r.All, &all) })
	go l.Serve(d.keyOf(c.Rank), d.accept)
	return d
}

// keyOf returns the key for connections to a rank: an address may lead to another rank of the job.
func (d *direct) keyOf(rank int) network.Key { return d.key.For(fmt.Sprintf("to rank %d", rank)) }

// connect makes the missing ones of these connections, as the ranks at their other ends do too.
func (d *direct) connect(ctx context.Context, numbers []int) error {
	var group sync.WaitGroup
	made, errs := make([]net.Conn, len(numbers)), make([]error, len(numbers))
	for i, number := range numbers {
		if number != d.config.Rank && d.conns[number] == nil {
			group.Go(func() { made[i], errs[i] = d.one(ctx, number) })
		}
	}
	group.Wait()
	for i, number := range numbers {
		if made[i] != nil {
			d.conns[number] = made[i]
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

// accept takes a connection, which begins with its number: the other rank may reach this one in
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

// from returns the channel for a connection that another rank makes.
func (d *direct) from(number int) chan net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.arrived[number] == nil {
		d.arrived[number] = make(chan net.Conn)
	}
	return d.arrived[number]
}

// one makes a connection. Its number at the other end is that of this rank likewise.
func (d *direct) one(ctx context.Context, number int) (net.Conn, error) {
	rank := number % d.config.Size
	if rank < d.config.Rank {
		select {
		case conn := <-d.from(number):
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
	if _, err := conn.Write(binary.LittleEndian.AppendUint64(nil, uint64(d.config.Rank+number-rank))); err != nil {
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
