package keyvalue

import (
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"gonbatch/distributed/network"
)

// Place is the address of the store, with the key that a rank needs to use it.
type Place struct {
	Addresses []string
	Key       network.Key
}

// Server runs the store for all ranks.
type Server struct {
	place    Place
	listener *network.Listener
	memory   *memory
}

// Listen creates the store. If local is set, it listens on this machine's loopback address only.
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

// Place returns what the other ranks need to use the store.
func (s *Server) Place() Place { return s.place }

// Close ends the store. Ranks that wait for a value get an error.
func (s *Server) Close() { s.listener.Close() }

// operation is the kind of a request.
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

// outcomes are the errors of operations, by their numbers in replies. They begin with none.
var outcomes = []error{nil, ErrExists, ErrNotFound}

type reply struct {
	Outcome int
	Value   []byte
}

// requestTime is how long a connected rank may take to send its request. maxMessage limits the size
// of requests and answers, and maxValue that of a value. The topology of a thousand ranks takes a
// megabyte.
const (
	requestTime = time.Minute
	maxValue    = 64 << 20
	maxMessage  = maxValue + 1<<20
)

// serve handles one operation.
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
	_ = gob.NewEncoder(conn).Encode(answer) // A rank that is gone asks again, or doesn't need the answer.
}

// answer runs an operation. It reports false if nobody waits for the answer anymore.
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
	outcome := slices.Index(outcomes, err)
	return reply{Outcome: outcome, Value: value}, outcome >= 0
}

// untilGone returns a context that ends with the listener, or with the connection, on which the
// rank sends nothing more.
func untilGone(l *network.Listener, conn net.Conn) context.Context {
	ctx, cancel := context.WithCancel(l.Context())
	go func() {
		defer cancel()
		_, _ = conn.Read(make([]byte, 1))
	}()
	return ctx
}
