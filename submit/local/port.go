package local

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// port is a port of the loopback address that this process keeps for rank 0: a socket is bound to
// it, but doesn't listen. Only processes of this user that ask to share the port, as rank 0 does,
// can listen there, and no other process is given it.
type port struct{ number, socket int }

// reservePort reserves any free port.
func reservePort() (port, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return port{}, fmt.Errorf("reserve a port for the ranks: socket: %w", err)
	}
	// Without SO_REUSEADDR, which would let any process have it that asks for this too.
	err = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	if err == nil {
		err = unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	var name unix.Sockaddr
	if err == nil {
		name, err = unix.Getsockname(socket)
	}
	if err != nil {
		_ = unix.Close(socket)
		return port{}, fmt.Errorf("reserve a port for the ranks: %w", err)
	}
	return port{name.(*unix.SockaddrInet4).Port, socket}, nil
}

// close gives the port up.
func (p port) close() { _ = unix.Close(p.socket) }
