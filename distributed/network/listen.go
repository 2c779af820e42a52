package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// Listener takes connections of the job.
type Listener struct {
	net.Listener
	ctx   context.Context
	close context.CancelFunc
}

// Listen opens the port, or, where that is "0", any free one: on the loopback where all that will
// call are on this machine, else on all interfaces.
func Listen(ctx context.Context, local bool, port string) (*Listener, error) {
	host := ""
	if local {
		host = loopback
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &Listener{l, ctx, cancel}, nil
}

const loopback = "127.0.0.1"

// Port is the one that it listens at.
func (l *Listener) Port() string { return strconv.Itoa(l.Addr().(*net.TCPAddr).Port) }

// Context ends when the listener is closed.
func (l *Listener) Context() context.Context { return l.ctx }

// Close ends it. Connections that were handed over stay.
func (l *Listener) Close() error {
	l.close()
	return l.Listener.Close()
}

// Addresses are where it may be reached: from other machines, and, last, from this one.
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

// maxUnproven bounds the connections that have not proved yet who they are: strangers can't use up
// the process' files.
const maxUnproven = 512

// Serve hands each connection of one that knows the key to a goroutine of its own, until the
// listener is closed. Strangers, and those that say nothing, hold nobody up.
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

// accept takes the next connection. What fails now may work later: a process that has no file left
// gets some back.
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
