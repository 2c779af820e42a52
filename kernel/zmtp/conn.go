package zmtp

import (
	"bufio"
	"fmt"
	"net"
	"time"
)

// conn is a client's connection.
type conn struct {
	net.Conn
	in       *bufio.Reader
	reading  *patience
	out      *queue
	identity string
	// topics counts the subscriptions to each topic by the client of a Pub; the Pub's mutex guards
	// it.
	topics map[string]int
}

// patience reads from a connection with deadlines: until end if that is set, or else forever
// between messages, and within a message only as long as its parts keep coming.
type patience struct {
	net.Conn
	end    time.Time
	part   time.Duration
	within bool
}

func (p *patience) Read(data []byte) (int, error) {
	deadline := p.end
	if p.within {
		deadline = time.Now().Add(p.part)
	}
	if err := p.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	return p.Conn.Read(data)
}

// receive reads the client's next message. It answers commands itself, except subscriptions, which
// it returns in the form of the messages that older clients send.
func (c *conn) receive(limit int64) (frames [][]byte, err error) {
	for {
		c.reading.within = false
		if _, err := c.in.Peek(1); err != nil {
			return nil, err
		}
		c.reading.within = true
		f, err := readFrame(c.in, limit)
		if err != nil {
			return nil, err
		}
		if !f.command {
			return c.rest(f, limit)
		}
		if frames, err = c.command(f.body); frames != nil || err != nil {
			return frames, err
		}
	}
}

// rest reads the frames after a message's first frame.
func (c *conn) rest(f frame, limit int64) ([][]byte, error) {
	frames, left := [][]byte{f.body}, limit-int64(len(f.body))
	for f.more {
		if len(frames) == mostFrames {
			return nil, fmt.Errorf("a message of more than %d frames", mostFrames)
		}
		var err error
		if f, err = readFrame(c.in, left); err != nil {
			return nil, err
		}
		if f.command {
			return nil, fmt.Errorf("%w: a command within a message", errMalformed)
		}
		left -= int64(len(f.body))
		frames = append(frames, f.body)
	}
	return frames, nil
}

func (c *conn) command(body []byte) (frames [][]byte, err error) {
	name, data, err := command(body)
	switch {
	case err != nil:
		return nil, err
	case name == "SUBSCRIBE":
		return [][]byte{append([]byte{subscribe}, data...)}, nil
	case name == "CANCEL":
		return [][]byte{append([]byte{unsubscribe}, data...)}, nil
	case name == "PING" && len(data) >= 2 && len(data) <= 2+16: // a time to live, and the data to repeat in the answer
		c.out.add(encodeCommand("PONG", data[2:]))
	}
	return nil, nil
}

// write writes packets from the queue until the queue is closed or the client is gone.
func (c *conn) write() {
	defer c.Close() //nolint:errcheck // nobody reads it anymore
	for {
		text, ok := c.out.take()
		if !ok {
			return
		}
		for len(text) > 0 {
			n, err := c.Write(text[:min(len(text), piece)])
			if err != nil {
				return
			}
			c.out.written(n)
			text = text[n:]
		}
	}
}

// Close closes the connection and ends the calls that wait for it.
func (c *conn) Close() error {
	c.out.close()
	return c.Conn.Close()
}
