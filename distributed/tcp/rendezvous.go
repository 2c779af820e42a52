package tcp

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"gonbatch/distributed/network"
)

// Config is a rank's place in the job.
type Config struct {
	Rank, Size int
	// Master is rank 0's address, host:port. Rank 0 listens there until all ranks have connected.
	Master string
	// Local means that all ranks are on this machine. They then listen on its loopback address
	// only.
	Local bool
	// Reserved means that another process of this user keeps the port of Master for rank 0: see
	// network.ListenReserved.
	Reserved bool
	// Secret is known only to the ranks of this job. Without one, anybody who can reach Master
	// while the ranks connect, and who knows this package's protocol, can join them.
	Secret string
	// Timeout limits the wait for all ranks; 0 means 5 minutes.
	Timeout time.Duration
}

const defaultTimeout = 5 * time.Minute

// Init joins the ring. It blocks until all ranks have called it.
func Init(ctx context.Context, c Config) (*Comm, error) {
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	comm, err := join(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("tcp: rank %d of %d: %w", c.Rank, c.Size, err)
	}
	return comm, nil
}

func join(ctx context.Context, c Config) (*Comm, error) {
	neighbours, err := network.Listen(ctx, c.Local, "0")
	if err != nil {
		return nil, fmt.Errorf("listen for the previous rank: %w", err)
	}
	defer neighbours.Close()
	addresses, err := neighbours.Addresses()
	if err != nil {
		return nil, err
	}
	others, err := network.Listen(ctx, c.Local, "0")
	if err != nil {
		return nil, fmt.Errorf("listen for the other ranks: %w", err)
	}
	me := member{Rank: c.Rank, Size: c.Size, Port: neighbours.Port(), DirectPort: others.Port(), Addresses: addresses}
	comm, err := meet(ctx, c, neighbours, me, others)
	if err != nil {
		others.Close()
	}
	return comm, err
}

// meet registers this rank and connects it to its neighbours. `others` is where ranks that aren't
// its neighbours may connect later.
func meet(ctx context.Context, c Config, neighbours *network.Listener, me member, others *network.Listener) (*Comm, error) {
	var err error
	var r reply
	if c.Rank == 0 {
		r, err = gather(ctx, c, me)
	} else {
		r, err = register(ctx, c, me)
	}
	if err != nil {
		return nil, err
	}
	comm, err := connect(ctx, c, neighbours, r)
	if err == nil {
		comm.direct = newDirect(c, newDialer(c, others, r))
	}
	return comm, err
}

// member is a rank's message to rank 0: how its neighbour can reach it.
type member struct {
	Rank, Size int
	Port       string
	// DirectPort is where ranks that aren't neighbours reach it, at the same hosts.
	DirectPort string
	// Addresses are all of the rank's addresses, the best first.
	Addresses []string
}

// prefer puts the host before the other addresses, because it has worked: somebody reached this
// rank at it, or this rank connected from it.
func (m *member) prefer(host net.Addr) {
	if tcp, ok := host.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		m.Addresses = append([]string{net.JoinHostPort(tcp.IP.String(), m.Port)}, m.Addresses...)
	}
}

// directly returns the addresses for ranks that aren't neighbours.
func (m *member) directly() []string {
	all := make([]string, 0, len(m.Addresses))
	for _, address := range m.Addresses {
		if host, _, err := net.SplitHostPort(address); err == nil {
			all = append(all, net.JoinHostPort(host, m.DirectPort))
		}
	}
	return all
}

// reply is rank 0's answer: where the other ranks listen, or why the rank is refused.
type reply struct {
	Next []string
	// All has the addresses for ranks that aren't neighbours, by rank, as JSON: it is the same for
	// all ranks, and few need it.
	All []byte
	// Key is the key of the ring.
	Key     network.Key
	Refused string
}

// key returns the key for connecting to rank 0.
func (c Config) key() network.Key { return network.Key(c.Secret).For("rendezvous") }

// masters returns the addresses at which rank 0 may listen.
func (c Config) masters() ([]string, error) {
	_, port, err := net.SplitHostPort(c.Master)
	if err != nil {
		return nil, fmt.Errorf("rank 0's address %q: %w", c.Master, err)
	}
	if c.Local {
		return []string{net.JoinHostPort("127.0.0.1", port)}, nil
	}
	return []string{c.Master}, nil
}

// register tells rank 0 where this rank listens, and returns where the next one does.
func register(ctx context.Context, c Config, me member) (reply, error) {
	masters, err := c.masters()
	if err != nil {
		return reply{}, err
	}
	conn, err := network.DialUntil(ctx, masters, c.key())
	if err != nil {
		return reply{}, c.explain(ctx, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	me.prefer(conn.LocalAddr())
	if err := gob.NewEncoder(conn).Encode(me); err != nil {
		return reply{}, c.explain(ctx, err)
	}
	var r reply
	if err := gob.NewDecoder(conn).Decode(&r); err != nil {
		return reply{}, c.explain(ctx, fmt.Errorf("rank 0 closed the connection: %w", err))
	}
	if r.Refused != "" {
		return reply{}, fmt.Errorf("join the ring at %s: %s", c.Master, r.Refused)
	}
	return r, nil
}

// explain adds rank 0's address to an error.
func (c Config) explain(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return fmt.Errorf("join the ring at %s: %w", c.Master, err)
	}
	return fmt.Errorf("not all ranks connected to %s within %v: %w", c.Master, c.Timeout, errors.Join(ctx.Err(), err))
}

// edge returns the key for the connection between a rank and the next one.
func (c Config) edge(k network.Key, from int) network.Key {
	from = (from + c.Size) % c.Size
	return k.For(fmt.Sprintf("from rank %d to the next", from))
}

// connect connects to the next rank, and waits for the previous one to connect.
func connect(ctx context.Context, c Config, neighbours *network.Listener, r reply) (*Comm, error) {
	previous := make(chan net.Conn)
	go neighbours.Serve(c.edge(r.Key, c.Rank-1), func(conn net.Conn) {
		// The caller may reach this rank in several ways. It sends a byte on the connection that it
		// will use.
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		_, err := io.ReadFull(conn, make([]byte, 1))
		if !stop() || err != nil {
			conn.Close()
			return
		}
		select {
		case previous <- conn:
		case <-ctx.Done():
			conn.Close()
		}
	})
	next := (c.Rank + 1) % c.Size
	to, err := network.DialUntil(ctx, r.Next, c.edge(r.Key, c.Rank))
	if err == nil {
		_, err = to.Write([]byte{1})
	}
	if err != nil {
		return nil, fmt.Errorf("reach rank %d at %v: %w", next, r.Next, err)
	}
	select {
	case from := <-previous:
		return newComm(c, from, to), nil
	case <-ctx.Done():
		to.Close()
		return nil, fmt.Errorf("rank %d did not connect within %v: %w", (c.Rank-1+c.Size)%c.Size, c.Timeout, ctx.Err())
	}
}
