package network

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// share lets a socket have a port that another process of this user has reserved: a socket of that
// process is bound to it with the same option, but doesn't listen.
func share(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(socket uintptr) {
		failed = unix.SetsockoptInt(int(socket), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(err, os.NewSyscallError("setsockopt", failed))
}
