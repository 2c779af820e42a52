package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"gonbatch/internal/rundir"
)

// stagger is the delay between attempts at different addresses: the first address is the best, and
// usually answers.
const stagger = 100 * time.Millisecond

// Dial connects to the first of the addresses at which a process proves that it knows the key. It
// tries each address once.
func Dial(ctx context.Context, addresses []string, k Key) (net.Conn, error) {
	if len(addresses) == 0 {
		return nil, errors.New("no addresses to connect to")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan result, len(addresses))
	failed := make(chan struct{}, len(addresses))
	go func() {
		for _, address := range addresses {
			go func() {
				conn, err := dialOne(ctx, address, k)
				failed <- struct{}{}
				results <- result{conn, err}
			}()
			select {
			case <-failed:
			case <-time.After(stagger):
			}
		}
	}()
	return first(results, len(addresses), cancel)
}

type result struct {
	conn net.Conn
	err  error
}

// first returns the first of n connections, and closes the others that still come.
func first(results <-chan result, n int, cancel func()) (net.Conn, error) {
	var errs []error
	for i := range n {
		r := <-results
		if r.err != nil {
			errs = append(errs, r.err)
			continue
		}
		cancel()
		go func() {
			for range n - i - 1 {
				if r := <-results; r.conn != nil {
					r.conn.Close()
				}
			}
		}()
		return r.conn, nil
	}
	return nil, errors.Join(errs...)
}

func dialOne(ctx context.Context, address string, k Key) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = k.Prove(conn)
	if !stop() || err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", address, errors.Join(err, ctx.Err()))
	}
	return conn, nil
}

// DialUntil calls Dial until it succeeds or the context ends.
func DialUntil(ctx context.Context, addresses []string, k Key) (net.Conn, error) {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		conn, err := Dial(ctx, addresses, k)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(pause):
		}
	}
}

// spareFiles are left for everything else that the process opens.
const spareFiles = 64

// Room returns an error if this process can't have so many more connections open at once. Go has
// already raised the soft limit of open files to the hard one.
func Room(connections int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil // Without /proc, the number of open files is unknown.
	}
	if need := len(open) + connections + spareFiles; uint64(need) > limit.Cur {
		return fmt.Errorf("%d connections need %d open files, and this process may have %d: raise its hard limit (ulimit -Hn %d, LimitNOFILE= in systemd, or ask your site's administrator), or use fewer ranks", connections, need, limit.Cur, need)
	}
	return nil
}

// Here identifies this machine's loopback address: processes with the same text can reach one
// another through it. If the loopback is down, the text is unique.
func Here() string {
	process, _ := rundir.ThisProcess() // Without /proc, its boot is unknown.
	space, _ := os.Readlink("/proc/self/ns/net")
	if process.Boot == "" || space == "" || !loopbackUp() {
		return string(NewKey())
	}
	return process.Boot + " " + space
}

func loopbackUp() bool {
	interfaces, err := net.Interfaces()
	if err != nil {
		return false
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 && i.Flags&net.FlagUp != 0 {
			return true
		}
	}
	return false
}
