package watch

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// When a machine fails, nothing closes its connections, but its kernel stops responding. The
// connection breaks after this time; if only the network failed, the rank reconnects. The kernel of
// a stopped process still responds.
const (
	keepAliveSeconds = 1
	keepAliveProbes  = 3
	lostAfter        = 4 * time.Second
)

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: keepAliveSeconds * time.Second, Interval: keepAliveSeconds * time.Second, Count: keepAliveProbes}

// tune makes a connection break when the other machine stops responding.
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
