package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
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
