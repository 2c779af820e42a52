package zmtp

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// server has the connections of a socket.
type server struct {
	Options
	socketType string
	listener   net.Listener
	// serve handles a client's message. An error ends the connection.
	serve func(c *conn, frames [][]byte) error
	// largest is the maximum size of a client's message.
	largest int64
	done    sync.WaitGroup

	mu sync.Mutex
	// pending are the connections in their handshake, the oldest first.
	pending []net.Conn
	conns   map[*conn]bool
	// closing is set when no more connections are accepted; closed is closed when the existing ones
	// have been flushed.
	closing bool
	closed  chan struct{}
}

func newServer(address, socketType string, opts Options) (*server, error) {
	l, err := listen(address)
	if err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	return &server{
		Options: opts, socketType: socketType, listener: l, largest: opts.Message, conns: map[*conn]bool{}, closed: make(chan struct{}),
	}, nil
}

func (s *server) start() {
	s.done.Go(s.accept)
}

// acceptPause is the pause after an error that may be temporary, such as too many open files.
const acceptPause = 50 * time.Millisecond

func (s *server) accept() {
	failed := false
	for {
		c, err := s.listener.Accept()
		if err == nil {
			failed = false
			if s.addPending(c) { // In the order in which they came.
				s.done.Go(func() { s.open(c) })
			}
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if !failed {
			s.Log(fmt.Errorf("%s: accept a client: %w", s.socketType, err))
		}
		failed = true
		select {
		case <-s.closed:
			return
		case <-time.After(acceptPause):
		}
	}
}

// open serves a connection from its handshake to its end.
func (s *server) open(raw net.Conn) {
	defer raw.Close()
	c, err := s.greet(raw)
	s.removePending(raw)
	if err != nil {
		s.logEnd("client refused", err)
		return
	}
	if !s.add(c) {
		return
	}
	s.done.Go(c.write)
	err = s.converse(c)
	s.remove(c)
	_ = c.Close()
	s.logEnd("client disconnected", err)
}

// greet performs the handshake of a new connection.
func (s *server) greet(raw net.Conn) (*conn, error) {
	reading := &patience{Conn: raw, part: s.Part, end: time.Now().Add(s.Handshake)}
	if err := raw.SetWriteDeadline(reading.end); err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, in: bufio.NewReader(reading), reading: reading, out: newQueue(s.Queue), topics: map[string]int{}}
	var err error
	if c.identity, err = handshake(raw, c.in, s.socketType); err != nil {
		return nil, err
	}
	if c.identity == "" {
		c.identity = "\x00" + rand.Text()
	}
	reading.end = time.Time{}
	return c, raw.SetWriteDeadline(time.Time{})
}

// converse serves the messages of a client until the connection ends.
func (s *server) converse(c *conn) error {
	for {
		frames, err := c.receive(s.largest)
		if err == nil {
			err = s.serve(c, frames)
		}
		if err != nil {
			return err
		}
	}
}

// addPending adds a connection to those in their handshake, and closes the oldest one if there are
// too many. A server that is closing closes the connection instead.
func (s *server) addPending(raw net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		_ = raw.Close()
		return false
	}
	if len(s.pending) >= s.Pending {
		_ = s.pending[0].Close()
		s.pending = s.pending[1:]
	}
	s.pending = append(s.pending, raw)
	return true
}

func (s *server) removePending(raw net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = slices.DeleteFunc(s.pending, func(other net.Conn) bool { return other == raw })
}

// add accepts a connection after its handshake.
func (s *server) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	if len(s.conns) >= s.Connections {
		s.Log(fmt.Errorf("%s: client refused: there are %d connections already", s.socketType, len(s.conns)))
		return false
	}
	s.conns[c] = true
	return true
}

func (s *server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// list returns the connections that satisfy a condition.
func (s *server) list(is func(*conn) bool) []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*conn
	for c := range s.conns {
		if is(c) {
			found = append(found, c)
		}
	}
	return found
}

func anyConn(*conn) bool { return true }

// send puts a packet into the queues of connections. A client that does not read is disconnected.
func (s *server) send(conns []*conn, packet []byte) {
	for _, c := range conns {
		if !c.out.add(packet) {
			s.disconnect(c, "it does not read what it is sent")
		}
	}
}

func (s *server) disconnect(c *conn, why string) {
	s.mu.Lock()
	there := s.conns[c]
	delete(s.conns, c)
	s.mu.Unlock()
	if there {
		s.Log(fmt.Errorf("%s: client disconnected: %s", s.socketType, why))
	}
	_ = c.Close()
}

// close closes the socket after its clients have read what they were sent, if they do so in time.
func (s *server) close() error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return nil
	}
	s.closing = true
	err := s.listener.Close()
	for _, raw := range s.pending {
		_ = raw.Close()
	}
	s.mu.Unlock()
	end := time.Now().Add(s.Flush)
	conns := s.list(anyConn)
	for _, c := range conns {
		c.out.drain(end)
	}
	close(s.closed)
	for _, c := range conns {
		_ = c.Close()
	}
	s.done.Wait()
	return err
}

// logEnd logs why a connection has ended, unless the client or this socket has just closed it.
func (s *server) logEnd(what string, err error) {
	for _, usual := range []error{io.EOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, usual) {
			return
		}
	}
	s.Log(fmt.Errorf("%s: %s: %w", s.socketType, what, err))
}
