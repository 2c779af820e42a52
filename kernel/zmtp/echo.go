package zmtp

// Echo is a socket that sends each message back, so that clients see that this process is alive.
type Echo struct{ server *server }

// ListenEcho listens for clients at an address such as tcp://127.0.0.1:5555 or ipc:///tmp/socket.
func ListenEcho(address string, opts Options) (*Echo, error) {
	const largest = 64 << 10
	opts.Queue = largest
	s, err := newServer(address, "REP", opts)
	if err != nil {
		return nil, err
	}
	s.largest, s.serve = largest, func(c *conn, frames [][]byte) error {
		if hasEnvelope(frames) {
			s.send([]*conn{c}, encode(frames))
		}
		return nil
	}
	s.start()
	return &Echo{s}, nil
}

// hasEnvelope reports whether a message is a request: an empty frame precedes the content.
func hasEnvelope(frames [][]byte) bool {
	for _, frame := range frames[:len(frames)-1] {
		if len(frame) == 0 {
			return true
		}
	}
	return false
}

// Close closes the socket.
func (e *Echo) Close() error { return e.server.close() }
