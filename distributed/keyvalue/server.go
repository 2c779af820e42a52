package keyvalue

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"gonbatch/distributed/network"
)

// Place is where the store is, and what a rank must know to use it.
type Place struct {
	Addresses []string
	Key       network.Key
}

// Server has the store, for the other ranks.
type Server struct {
	place    Place
	listener *network.Listener
	memory   *memory
}

// Listen makes the store: on this machine's loopback where all ranks are here.
func Listen(ctx context.Context, local bool) (*Server, error) {
	l, err := network.Listen(ctx, local, "0")
	if err != nil {
		return nil, fmt.Errorf("keyvalue: listen for the other ranks: %w", err)
	}
	addresses, err := l.Addresses()
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("keyvalue: %w", err)
	}
	s := &Server{place: Place{addresses, network.NewKey()}, listener: l, memory: newMemory()}
	go l.Serve(s.place.Key, s.serve)
	return s, nil
}

// Place is what the other ranks must be told.
func (s *Server) Place() Place { return s.place }

// Close ends the store. Ranks that wait for a value learn that it is gone.
func (s *Server) Close() { s.listener.Close() }

// operation is what a rank asks for.
type operation int

const (
	opPut operation = iota + 1
	opGet
	opTryGet
)

type request struct {
	Operation  operation
	Key, Token string
	Value      []byte
}

// outcome is how an operation ended.
type outcome int

const (
	done outcome = iota + 1
	exists
	notFound
)

type reply struct {
	Outcome outcome
	Value   []byte
}

// requestTime is how long a rank that has connected may take to say what it wants. maxMessage
// bounds that and the answer, and maxValue a value: the topology of a thousand ranks is a megabyte.
const (
	requestTime = time.Minute
	maxValue    = 64 << 20
	maxMessage  = maxValue + 1<<20
)

// serve is for one operation.
func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(requestTime))
	var r request
	if gob.NewDecoder(io.LimitReader(conn, maxMessage)).Decode(&r) != nil {
		return
	}
	conn.SetDeadline(time.Time{})
	answer, ok := s.answer(conn, r)
	if !ok {
		return
	}
	conn.SetDeadline(time.Now().Add(requestTime))
	_ = gob.NewEncoder(conn).Encode(answer) // One that has gone asks again, or does not need it.
}

// answer does what is asked for. It is not ok if nobody waits for the answer any more.
func (s *Server) answer(conn net.Conn, r request) (reply, bool) {
	var value []byte
	var err error
	switch r.Operation {
	case opPut:
		err = s.memory.put(r.Key, r.Value, r.Token)
	case opGet:
		value, err = s.memory.get(untilGone(s.listener, conn), r.Key)
	case opTryGet:
		value, err = s.memory.tryGet(r.Key)
	default:
		return reply{}, false
	}
	switch {
	case errors.Is(err, ErrExists):
		return reply{Outcome: exists}, true
	case errors.Is(err, ErrNotFound):
		return reply{Outcome: notFound}, true
	}
	return reply{Outcome: done, Value: value}, err == nil
}

// untilGone ends with the connection, on which nothing more comes, or with the listener.
func untilGone(l *network.Listener, conn net.Conn) context.Context {
	ctx, cancel := context.WithCancel(l.Context())
	go func() {
		defer cancel()
		_, _ = conn.Read(make([]byte, 1))
	}()
	return ctx
}
