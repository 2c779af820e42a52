package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Listener accepts connections of the job.
type Listener struct {
	net.Listener
	ctx   context.Context
	close context.CancelFunc
}

// Listen listens on the port, or on any free port if it is "0". If all peers are local, it listens
// on the loopback address only, else on all interfaces.
func Listen(ctx context.Context, local bool, port string) (*Listener, error) {
	return listen(ctx, net.ListenConfig{}, local, port)
}

// ListenReserved is like Listen, on a port that another process of this user keeps for this one, by
// a socket that is bound to it with SO_REUSEPORT and does not listen.
func ListenReserved(ctx context.Context, local bool, port string) (*Listener, error) {
	return listen(ctx, net.ListenConfig{Control: share}, local, port)
}

func listen(ctx context.Context, config net.ListenConfig, local bool, port string) (*Listener, error) {
	host := ""
	if local {
		host = loopback
	}
	l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &Listener{l, ctx, cancel}, nil
}

const loopback = "127.0.0.1"

// Port returns the listener's port.
func (l *Listener) Port() string { return strconv.Itoa(l.Addr().(*net.TCPAddr).Port) }

// Context returns a context that ends when the listener is closed.
func (l *Listener) Context() context.Context { return l.ctx }

// Close closes the listener. Connections that were passed to a handler stay open.
func (l *Listener) Close() error {
	l.close()
	return l.Listener.Close()
}

// Addresses returns the listener's addresses: first those for other machines, then the loopback
// ones.
func (l *Listener) Addresses() ([]string, error) {
	if at := l.Addr().(*net.TCPAddr); !at.IP.IsUnspecified() {
		return []string{at.String()}, nil
	}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	var far, near []string
	for _, a := range interfaces {
		network, ok := a.(*net.IPNet)
		if !ok || network.IP.IsLinkLocalUnicast() {
			continue
		}
		address := net.JoinHostPort(network.IP.String(), l.Port())
		if network.IP.IsLoopback() {
			near = append(near, address)
		} else {
			far = append(far, address)
		}
	}
	return append(far, near...), nil
}

// maxUnproven limits the connections that have not yet proved that they know the key, so that
// strangers can't use up the process's file descriptors.
const maxUnproven = 512

// Serve calls handle, in a new goroutine, for each connection that proves that it knows the key,
// until the listener is closed. Strangers and silent connections do not delay other ranks.
func (l *Listener) Serve(k Key, handle func(net.Conn)) {
	unproven := make(chan struct{}, maxUnproven)
	for {
		conn, err := l.accept()
		if err != nil {
			return
		}
		unproven <- struct{}{}
		go func() {
			stop := context.AfterFunc(l.ctx, func() { conn.Close() })
			err := k.Check(conn)
			<-unproven
			if !stop() || err != nil {
				conn.Close()
				return
			}
			handle(conn)
		}()
	}
}

// accept accepts the next connection. An error may be temporary: a process that has run out of file
// descriptors may get some back.
func (l *Listener) accept() (net.Conn, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		conn, err := l.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) {
			return conn, err
		}
		select {
		case <-l.ctx.Done():
			return nil, net.ErrClosed
		case <-time.After(pause):
		}
	}
}

// share lets a socket have a port that another process of this user has reserved: a socket of that
// process is bound to it with the same option, but doesn't listen.
func share(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(socket uintptr) {
		failed = unix.SetsockoptInt(int(socket), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(err, os.NewSyscallError("setsockopt", failed))
}
