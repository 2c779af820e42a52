package executed

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// mergeTexts reads two non-blocking pipes until both have ended or stop is closed, and passes the
// text on. One thread reads both, standard output first, so that what a program prints before it
// panics comes before the panic.
func mergeTexts(out, err *os.File, stop <-chan struct{}, write func(stream string, text []byte)) error {
	defer out.Close() //nolint:errcheck // only read
	defer err.Close() //nolint:errcheck // only read
	names := [...]string{"stdout", "stderr"}
	fds := make([]unix.PollFd, len(names))
	for i, file := range []*os.File{out, err} {
		fd, err := rawFd(file)
		if err != nil {
			return err
		}
		fds[i] = unix.PollFd{Fd: fd, Events: unix.POLLIN}
	}
	chunk := make([]byte, 32<<10)
	for fds[0].Fd >= 0 || fds[1].Fd >= 0 {
		select {
		case <-stop:
			return nil
		default:
		}
		if _, err := unix.Poll(fds, int(pollTime.Milliseconds())); err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("poll", err)
		}
		for i := range fds {
			if fds[i].Fd < 0 || fds[i].Revents == 0 {
				continue
			}
			n, err := unix.Read(int(fds[i].Fd), chunk)
			switch {
			case n > 0:
				write(names[i], chunk[:n])
			case n == 0 || !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
				fds[i].Fd = -1 // The pipe has ended; poll skips it.
			}
		}
	}
	return nil
}

// pollTime is the longest time until a stop is noticed.
const pollTime = 200 * time.Millisecond

// rawFd returns a file's descriptor. Unlike the method Fd, it doesn't make the file blocking.
func rawFd(file *os.File) (fd int32, err error) {
	conn, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	err = conn.Control(func(n uintptr) { fd = int32(n) })
	return fd, err
}

// hasData reports whether a pipe has data that was not read. One that is closed has none.
func hasData(pipe *os.File) bool {
	conn, err := pipe.SyscallConn()
	if err != nil {
		return false
	}
	left := 0
	err = conn.Control(func(fd uintptr) { left, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }) // Pipes support this request.
	return err == nil && left > 0
}
