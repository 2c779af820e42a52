package tcp

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"time"
)

// Config is a rank's place in the job.
type Config struct {
	Rank, Size int
	// Master is rank 0's address, host:port. Rank 0 listens there until all ranks have come.
	Master string
	// Timeout for all ranks to come; 0 stands for 5 minutes.
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
	if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		return nil, fmt.Errorf("tcp: rank %d of %d: not all ranks came to %s within %v: %w", c.Rank, c.Size, c.Master, c.Timeout, err)
	}
	if err != nil {
		return nil, fmt.Errorf("tcp: rank %d of %d: join the ring at %s: %w", c.Rank, c.Size, c.Master, err)
	}
	return comm, nil
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout()
}

// member is what a rank tells rank 0: where its neighbour finds it.
type member struct {
	Rank, Size int
	Address    string
}

// reply is rank 0's answer: every rank's address, or why there is none.
type reply struct {
	Addresses []string
	Refused   string
}

func join(ctx context.Context, c Config) (*Comm, error) {
	var listen net.ListenConfig
	neighbours, err := listen.Listen(ctx, "tcp", ":0")
	if err != nil {
		return nil, err
	}
	defer neighbours.Close()
	port := neighbours.Addr().(*net.TCPAddr).Port

	hosted := make(chan error, 1)
	if c.Rank == 0 {
		go func() { hosted <- host(ctx, c) }()
	} else {
		hosted <- nil
	}
	addresses, err := register(ctx, c, port)
	if err := errors.Join(<-hosted, err); err != nil {
		return nil, err
	}
	return connect(ctx, c, neighbours, addresses[(c.Rank+1)%c.Size])
}

// host is rank 0's other half: it collects the addresses of all ranks and hands them out.
func host(ctx context.Context, c Config) error {
	_, port, err := net.SplitHostPort(c.Master)
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", ":"+port)
	if err != nil {
		return err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()

	answer := reply{Addresses: make([]string, c.Size)}
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	for len(conns) < c.Size && answer.Refused == "" {
		conn, err := l.Accept()
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		var m member
		if err := receive(ctx, conn, &m); err != nil {
			conn.Close() // Not one of ours: somebody scans ports.
			continue
		}
		conns = append(conns, conn)
		answer.Refused = m.check(c, answer.Addresses)
		if answer.Refused == "" {
			answer.Addresses[m.Rank] = m.Address
		}
	}
	for _, conn := range conns {
		if err := gob.NewEncoder(conn).Encode(answer); err != nil {
			return err
		}
	}
	return nil
}

// check says why a member can't be taken.
func (m member) check(c Config, taken []string) string {
	switch {
	case m.Size != c.Size:
		return fmt.Sprintf("rank %d says the world has %d ranks, rank 0 says %d", m.Rank, m.Size, c.Size)
	case m.Rank < 0 || m.Rank >= c.Size:
		return fmt.Sprintf("rank %d of %d", m.Rank, c.Size)
	case taken[m.Rank] != "":
		return fmt.Sprintf("two processes say they are rank %d", m.Rank)
	}
	return ""
}

// register tells rank 0 where this rank listens, on the interface by which rank 0 is reached, and learns the others' addresses.
func register(ctx context.Context, c Config, port int) ([]string, error) {
	conn, err := dial(ctx, c.Master)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	local, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		return nil, err
	}
	if err := gob.NewEncoder(conn).Encode(member{c.Rank, c.Size, net.JoinHostPort(local, fmt.Sprint(port))}); err != nil {
		return nil, err
	}
	var answer reply
	if err := receive(ctx, conn, &answer); err != nil {
		return nil, err
	}
	if answer.Refused != "" {
		return nil, errors.New(answer.Refused)
	}
	return answer.Addresses, nil
}

func receive(ctx context.Context, conn net.Conn, value any) error {
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetReadDeadline(deadline)
	}
	return gob.NewDecoder(conn).Decode(value)
}

// dial tries until the other side listens.
func dial(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// connect dials the next rank while the previous one dials this.
func connect(ctx context.Context, c Config, neighbours net.Listener, next string) (*Comm, error) {
	defer context.AfterFunc(ctx, func() { neighbours.Close() })()
	type accepted struct {
		conn net.Conn
		err  error
	}
	previous := make(chan accepted, 1)
	go func() {
		conn, err := neighbours.Accept()
		previous <- accepted{conn, err}
	}()
	to, err := dial(ctx, next)
	if err != nil {
		return nil, err
	}
	from := <-previous
	if from.err != nil {
		to.Close()
		return nil, errors.Join(ctx.Err(), from.err)
	}
	return newComm(c, from.conn, to), nil
}
