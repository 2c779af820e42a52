package keyvalue

import (
	"context"
	"crypto/rand"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"gonbatch/distributed/network"
)

// The errors of operations.
var (
	// ErrExists means that the key already has a value, which stays unchanged.
	ErrExists = errors.New("the key already has a value")
	// ErrNotFound means that the key has no value yet.
	ErrNotFound = errors.New("the key has no value")
	// ErrTimeout means that no rank put the key in time.
	ErrTimeout = errors.New("no rank put it in time")
	// ErrClosed means that this rank has closed the store.
	ErrClosed = errors.New("this rank has left the job")
	// ErrUnreachable means that rank 0 does not answer.
	ErrUnreachable = errors.New("rank 0, which has the store, does not answer: it has ended, or its machine can't be reached")
)

// patience is how long rank 0 may be unreachable before it counts as gone. Usually the watch ends
// the job before that.
const patience = 30 * time.Second

// Store is a rank's client of the store. Its methods block, and may be called from several
// goroutines. Their errors name the rank and the key.
type Store struct {
	rank     int
	place    Place
	patience time.Duration
	ctx      context.Context
	cancel   context.CancelCauseFunc
}

// Dial returns a client of the store for a rank. It connects only when needed.
func Dial(rank int, place Place) *Store {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Store{rank, place, patience, ctx, cancel}
}

// Close ends all waiting operations with ErrClosed.
func (s *Store) Close() { s.cancel(ErrClosed) }

// Put sets the value of a key. A value never changes: a second Put returns ErrExists.
func (s *Store) Put(key string, value []byte) error {
	if len(value) > maxValue {
		return s.explain("put", key, fmt.Errorf("the value has %d bytes, more than %d", len(value), maxValue))
	}
	_, err := s.do(s.ctx, request{Operation: opPut, Key: key, Value: value, Token: rand.Text()})
	return s.explain("put", key, err)
}

// Get waits, up to the limit, for another rank to put the key, and returns its value.
func (s *Store) Get(key string, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(s.ctx, limit, fmt.Errorf("%w (%v)", ErrTimeout, limit))
	defer cancel()
	value, err := s.do(ctx, request{Operation: opGet, Key: key})
	return value, s.explain("get", key, err)
}

// TryGet returns the value of a key, or ErrNotFound if it has none yet.
func (s *Store) TryGet(key string) ([]byte, error) {
	value, err := s.do(s.ctx, request{Operation: opTryGet, Key: key})
	return value, s.explain("try to get", key, err)
}

func (s *Store) explain(what, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("keyvalue: rank %d: %s %q: %w", s.rank, what, key, err)
}

// The pauses between two attempts to reach rank 0.
const (
	firstPause = 20 * time.Millisecond
	longPause  = time.Second
)

// steady is how long a connection must last to show that rank 0 is alive.
const steady = time.Second

// do asks rank 0, and asks again if the connection can't be made or breaks. A network may fail for
// a moment, and a process may run out of file descriptors for a moment.
func (s *Store) do(ctx context.Context, r request) ([]byte, error) {
	reached, pause := time.Now(), firstPause
	for {
		asked := time.Now()
		answer, connected, err := s.ask(ctx, r)
		switch {
		case err == nil:
			return answer.result()
		case ctx.Err() != nil && connected:
			return nil, context.Cause(ctx)
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case connected && time.Since(asked) > steady:
			reached, pause = time.Now(), firstPause
		case time.Since(reached) >= s.patience:
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(2*pause, longPause)
		}
	}
}

// ask asks once. It reports whether there was a connection.
func (s *Store) ask(ctx context.Context, r request) (answer reply, connected bool, err error) {
	attempt, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	conn, err := network.Dial(attempt, s.place.Addresses, s.place.Key)
	if err != nil {
		return reply{}, false, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	answer, err = exchange(conn, r)
	return answer, true, err
}

func exchange(conn net.Conn, r request) (answer reply, err error) {
	if err := gob.NewEncoder(conn).Encode(r); err != nil {
		return reply{}, err
	}
	return answer, gob.NewDecoder(io.LimitReader(conn, maxMessage)).Decode(&answer)
}

func (r reply) result() ([]byte, error) {
	if r.Outcome < 0 || r.Outcome >= len(outcomes) {
		return nil, fmt.Errorf("rank 0 sent the unknown answer %d: all ranks must run the same program", r.Outcome)
	}
	return r.Value, outcomes[r.Outcome]
}
