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

// What an operation can come to, beside a value.
var (
	// ErrExists: the key has a value, which stays.
	ErrExists = errors.New("the key has a value already")
	// ErrNotFound: the key has no value yet.
	ErrNotFound = errors.New("the key has no value")
	// ErrTimeout: nobody has put the key in time.
	ErrTimeout = errors.New("no rank has put it in time")
	// ErrClosed: this rank has closed the store.
	ErrClosed = errors.New("this rank has left the job")
	// ErrUnreachable: rank 0 does not answer.
	ErrUnreachable = errors.New("rank 0, which has the store, does not answer: it has ended, or its machine can't be reached")
)

// patience is how long rank 0 may not be reached before it counts as gone. The watch usually ends
// the job before.
const patience = 30 * time.Second

// Store is a rank's way to the store. Its methods block, and may be called from several goroutines.
// Their errors name the rank and the key.
type Store struct {
	rank     int
	place    Place
	patience time.Duration
	ctx      context.Context
	cancel   context.CancelCauseFunc
}

// Dial returns the store at that place, for a rank. It connects when it is needed.
func Dial(rank int, place Place) *Store {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Store{rank, place, patience, ctx, cancel}
}

// Close ends what waits for a value, with ErrClosed.
func (s *Store) Close() { s.cancel(ErrClosed) }

// Put sets the value of a key. A value stays: a second Put is refused with ErrExists.
func (s *Store) Put(key string, value []byte) error {
	if len(value) > maxValue {
		return s.explain("put", key, fmt.Errorf("the value has %d bytes, more than %d", len(value), maxValue))
	}
	_, err := s.do(s.ctx, request{Operation: opPut, Key: key, Value: value, Token: rand.Text()})
	return s.explain("put", key, err)
}

// Get waits for the value of a key, which another rank puts, up to the limit.
func (s *Store) Get(key string, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(s.ctx, limit, fmt.Errorf("%w, within %v", ErrTimeout, limit))
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

// steady is how long a connection must last to show that rank 0 is there.
const steady = time.Second

// do asks rank 0, and asks again where the connection breaks or can't be made: a network may fail
// for a moment, and a process that has no file left gets some back.
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
	switch r.Outcome {
	case done:
		return r.Value, nil
	case exists:
		return nil, ErrExists
	case notFound:
		return nil, ErrNotFound
	}
	return nil, fmt.Errorf("rank 0 answers %d: all ranks must run the same program", r.Outcome)
}
