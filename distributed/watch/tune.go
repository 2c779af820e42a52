package watch

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// A machine that is gone, unlike a process, does not say so. Its kernel doesn't answer any more: so
// long later the connection breaks, and is made again if that was the network. A stopped process'
// kernel does answer.
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
