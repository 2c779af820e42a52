package tcp

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
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
	l, err := network.Listen(ctx, c.Local, "0")
	if err != nil {
		return nil, fmt.Errorf("listen for the other ranks: %w", err)
	}
	r, err := meet(ctx, c, l)
	if err != nil {
		l.Close()
		return nil, err
	}
	return newComm(ctx, c, l, r)
}

// meet registers this rank, which listens for the others.
func meet(ctx context.Context, c Config, l *network.Listener) (reply, error) {
	addresses, err := l.Addresses()
	if err != nil {
		return reply{}, err
	}
	me := member{Rank: c.Rank, Size: c.Size, Port: l.Port(), Addresses: addresses}
	if c.Rank == 0 {
		return gather(ctx, c, me)
	}
	return register(ctx, c, me)
}

// member is a rank's message to rank 0: how others can reach it.
type member struct {
	Rank, Size int
	Port       string
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

// reply is rank 0's answer: where the other ranks listen, or why the rank is refused.
type reply struct {
	// Next has the addresses of the next rank.
	Next []string
	// All has those of all ranks, as JSON: it is the same for all ranks, and few need it. Nobody
	// needs those of rank 0: of two ranks, the lower one connects.
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
