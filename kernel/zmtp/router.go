package zmtp

import (
	"context"
	"net"
)

// Router is a socket that receives requests from clients and answers them. Its methods may be
// called concurrently.
type Router struct {
	server   *server
	messages chan [][]byte
}

// ListenRouter listens for clients at an address such as tcp://127.0.0.1:5555 or ipc:///tmp/socket.
func ListenRouter(address string, opts Options) (*Router, error) {
	s, err := newServer(address, "ROUTER", opts)
	if err != nil {
		return nil, err
	}
	r := &Router{server: s, messages: make(chan [][]byte)}
	s.serve = r.serve
	s.start()
	return r, nil
}

// serve passes a message to Receive. The client waits until Receive is called.
func (r *Router) serve(c *conn, frames [][]byte) error {
	select {
	case r.messages <- append([][]byte{[]byte(c.identity)}, frames...):
		return nil
	case <-r.server.closed:
		return net.ErrClosed
	}
}

// Receive waits for a client's next message. Its first frame is the client's identity. The error is
// net.ErrClosed when the socket is closed, or ctx's error.
func (r *Router) Receive(ctx context.Context) ([][]byte, error) {
	select {
	case frames := <-r.messages:
		return frames, nil
	case <-r.server.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Send sends a message to the client whose identity is the first frame, or to nobody if that client
// is gone. It does not wait. If several connections have the same identity, each gets the message:
// nobody can steal a client's answers by using its name.
func (r *Router) Send(frames [][]byte) error {
	identity := string(frames[0])
	r.server.send(r.server.list(func(c *conn) bool { return c.identity == identity }), encode(frames[1:]))
	return nil
}

// Close closes the socket after its clients have read what they were sent, if they do so in time.
func (r *Router) Close() error { return r.server.close() }
