package watch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A machine that is gone, unlike a process, does not say so. Its kernel doesn't answer any more: these many seconds later the connection breaks. A
// stopped process' kernel does answer.
const (
	keepAliveSeconds = 1
	keepAliveProbes  = 3
	lostAfter        = 4 * time.Second
)

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: keepAliveSeconds * time.Second, Interval: keepAliveSeconds * time.Second, Count: keepAliveProbes}

// tune makes a connection notice that the other machine is gone.
func tune(conn net.Conn) error {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	if err := tcp.SetKeepAliveConfig(keepAlive); err != nil {
		return err
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var optErr error
	err = raw.Control(func(fd uintptr) {
		optErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostAfter.Milliseconds()))
	})
	return errors.Join(err, optErr)
}

// addresses are where a listener on all interfaces may be reached from other machines; the loopback, for ranks of this one, comes last.
func addresses(l net.Listener) ([]string, error) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	var far, near []string
	for _, a := range interfaces {
		network, ok := a.(*net.IPNet)
		if !ok || network.IP.IsLinkLocalUnicast() {
			continue
		}
		address := net.JoinHostPort(network.IP.String(), port)
		if network.IP.IsLoopback() {
			near = append(near, address)
		} else {
			far = append(far, address)
		}
	}
	return append(far, near...), nil
}

// dialTimeout bounds the search for a way to a hub.
const dialTimeout = 15 * time.Second

// dial connects to whichever of the addresses leads to the hub. Another machine may have the same address on a network of its own
// (containers' bridges, the loopback): the handshake tells.
func dial(ctx context.Context, addresses []string, k key, h hello) (*link, error) {
	if len(addresses) == 0 {
		return nil, errors.New("it has no address")
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	type result struct {
		link *link
		err  error
	}
	results := make(chan result, len(addresses))
	for _, address := range addresses {
		go func() {
			l, err := dialOne(ctx, address, k)
			results <- result{l, err}
		}()
	}
	var found *link
	var errs []error
	for range addresses {
		r := <-results
		switch {
		case r.err != nil:
			errs = append(errs, r.err)
		case found == nil:
			found = r.link
			cancel() // The others are not needed.
		default:
			r.link.close()
		}
	}
	if found == nil {
		return nil, errors.Join(errs...)
	}
	return found, found.send(h)
}

func dialOne(ctx context.Context, address string, k key) (*link, error) {
	dialer := net.Dialer{KeepAliveConfig: keepAlive}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = errors.Join(tune(conn), k.prove(conn))
	if !stop() || err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", address, errors.Join(err, ctx.Err()))
	}
	return newLink(conn), nil
}
