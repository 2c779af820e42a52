package zmtp

import (
	"fmt"
	"strings"
)

// A client subscribes to a topic with a message of one frame, which begins with one of these bytes.
const (
	unsubscribe = 0
	subscribe   = 1
)

// A client of a Pub may have mostTopics topics, each of at most largestTopic bytes.
const (
	mostTopics   = 1000
	largestTopic = 4 << 10
)

// Pub is a socket whose clients receive the messages on the topics that they subscribe to. Its
// methods may be called concurrently.
type Pub struct{ server *server }

// ListenPub listens for clients at an address such as tcp://127.0.0.1:5555 or ipc:///tmp/socket.
func ListenPub(address string, opts Options) (*Pub, error) {
	s, err := newServer(address, "PUB", opts)
	if err != nil {
		return nil, err
	}
	p := &Pub{server: s}
	s.largest, s.serve = 1+largestTopic, p.serve
	s.start()
	return p, nil
}

// serve handles a subscription. It ignores other messages.
func (p *Pub) serve(c *conn, frames [][]byte) error {
	if len(frames) != 1 || len(frames[0]) == 0 {
		return nil
	}
	topic := string(frames[0][1:])
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	switch frames[0][0] {
	case subscribe:
		c.topics[topic]++
		if len(c.topics) > mostTopics {
			return fmt.Errorf("more than %d topics", mostTopics)
		}
	case unsubscribe:
		if c.topics[topic]--; c.topics[topic] <= 0 {
			delete(c.topics, topic)
		}
	}
	return nil
}

// Send sends a message to all clients that have subscribed to a prefix of its first frame. It does
// not wait: a client whose queue is too long is disconnected. Call Wait to prevent that.
func (p *Pub) Send(frames [][]byte) error {
	p.server.send(p.server.list(func(c *conn) bool { return c.subscribed(frames[0]) }), encode(frames))
	return nil
}

func (c *conn) subscribed(topic []byte) bool {
	for wanted := range c.topics {
		if strings.HasPrefix(string(topic), wanted) {
			return true
		}
	}
	return false
}

// Wait waits until there is space in the queues of all clients. It disconnects clients that have
// stopped reading.
func (p *Pub) Wait() {
	for _, c := range p.server.list(anyConn) {
		if !c.out.room(p.server.Stall) {
			p.server.disconnect(c, fmt.Sprintf("it has read nothing for %v of what it is sent", p.server.Stall))
		}
	}
}

// Close closes the socket after its clients have read what they were sent, if they do so in time.
func (p *Pub) Close() error { return p.server.close() }
