package zmtp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
)

// listen listens at tcp://HOST:PORT or ipc://PATH, in ZeroMQ's notation.
func listen(address string) (net.Listener, error) {
	transport, place, _ := strings.Cut(address, "://")
	switch transport {
	case "tcp":
		return net.Listen("tcp", strings.TrimPrefix(place, "*"))
	case "ipc":
		return listenAtFile(place)
	}
	return nil, fmt.Errorf("address %q: want tcp://HOST:PORT or ipc://PATH", address)
}

// listenAtFile listens at a socket in the file system, for this user only. It replaces a socket
// that a killed process has left there, as ZeroMQ does.
func listenAtFile(path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && isAbandoned(path) {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
		l, err = net.Listen("unix", path)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// isAbandoned reports whether a path is a socket on which no process listens.
func isAbandoned(path string) bool {
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSocket == 0 {
		return false
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
