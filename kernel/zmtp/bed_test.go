package zmtp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bed has a socket of each kind.
type bed struct {
	*testing.T
	router *Router
	pub    *Pub
	log    *logBuffer
}

func newBed(t *testing.T, transport string, opts Options) *bed {
	t.Helper()
	b := &bed{T: t, log: &logBuffer{}}
	opts.Log = b.log.add
	address := func(name string) string {
		if transport == "ipc" {
			return "ipc://" + filepath.Join(t.TempDir(), name)
		}
		return "tcp://127.0.0.1:0"
	}
	var errs [2]error
	b.router, errs[0] = ListenRouter(address("r"), opts)
	b.pub, errs[1] = ListenPub(address("p"), opts)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(b.router.Close(), b.pub.Close()); err != nil {
			t.Error(err)
		}
	})
	return b
}

// address returns where a socket listens, in the form for clients.
func (b *bed) address(s *server) string {
	a := s.listener.Addr()
	if a.Network() == "unix" {
		return "ipc://" + a.String()
	}
	return "tcp://" + a.String()
}

// answer sends each message back, or publishes what it asks for.
func (b *bed) answer() {
	for {
		frames, err := b.router.Receive(b.Context())
		if err != nil {
			return
		}
		var topic string
		var count, size int
		if n, _ := fmt.Sscanf(string(frames[1]), "publish %s %d %d", &topic, &count, &size); n != 3 {
			_ = b.router.Send(frames)
			continue
		}
		for i := range count {
			b.pub.Wait()
			_ = b.pub.Send([][]byte{[]byte(topic), []byte(fmt.Sprint(i)), bytes.Repeat([]byte("x"), size)})
		}
	}
}

func (b *bed) dial(s *server) net.Conn {
	b.Helper()
	c, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(5 * time.Minute))
	return c
}

// client is a client controlled by the test.
type client struct {
	*bed
	net.Conn
	in *bufio.Reader
}

// connect returns a client whose handshake is done.
func (b *bed) connect(s *server, socketType string) *client {
	b.Helper()
	c := &client{bed: b, Conn: b.dial(s)}
	if err := c.greet(socketType); err != nil {
		b.Fatal(err)
	}
	return c
}

func (c *client) greet(socketType string) error {
	c.in = bufio.NewReader(c.Conn)
	ready := encodeCommand("READY", property("Socket-Type", socketType))
	if _, err := c.Write(append(greetingOf("NULL", 3), ready...)); err != nil {
		return err
	}
	if _, err := io.ReadFull(c.in, make([]byte, greetingSize)); err != nil {
		return err
	}
	f, err := readFrame(c.in, mostMetadata)
	if err == nil && !f.command {
		err = fmt.Errorf("%q is no command", f.body)
	}
	return err
}

// subscribe returns a client whose subscription is in effect.
func (b *bed) subscribe(topic string) *client {
	b.Helper()
	before := len(b.pub.server.list(subscribed))
	c := b.connect(b.pub.server, "SUB")
	c.write(encode([][]byte{append([]byte{subscribe}, topic...)}))
	waitFor(b.T, "the subscription", func() bool { return len(b.pub.server.list(subscribed)) == before+1 })
	return c
}

func subscribed(c *conn) bool { return len(c.topics) > 0 }

func (c *client) write(text []byte) {
	c.Helper()
	if _, err := c.Write(text); err != nil {
		c.Fatal(err)
	}
}

// message reads a message.
func (c *client) message() [][]byte {
	c.Helper()
	frames, err := c.tryMessage()
	if err != nil {
		c.Fatal(err)
	}
	return frames
}

func (c *client) tryMessage() (frames [][]byte, err error) {
	for {
		f, err := readFrame(c.in, 1<<30)
		if err != nil {
			return frames, err
		}
		if frames = append(frames, f.body); !f.more {
			return frames, nil
		}
	}
}

// ask sends a message, and waits until it comes back.
func (c *client) ask(text string) {
	c.Helper()
	if err := c.tryAsk(text); err != nil {
		c.Fatal(err)
	}
}

func (c *client) tryAsk(text string) error {
	if _, err := c.Write(encode([][]byte{nil, []byte(text)})); err != nil {
		return err
	}
	got, err := c.tryMessage()
	if err == nil && (len(got) != 2 || string(got[1]) != text) {
		err = fmt.Errorf("%q answers %q", got, text)
	}
	return err
}

// served checks that a new client is served. On a slow machine it may miss a test's short time
// limits, and tries again.
func (b *bed) served(s *server, socketType string) {
	b.Helper()
	waitFor(b.T, "a client to be served", func() bool {
		c := &client{bed: b, Conn: b.dial(s)}
		defer c.Close()
		return c.greet(socketType) == nil && c.tryAsk("served") == nil
	})
}

func greetingOf(mechanism string, version byte) []byte {
	greeting := make([]byte, greetingSize)
	greeting[0], greeting[9], greeting[10] = 0xff, 0x7f, version
	copy(greeting[12:], mechanism)
	return greeting
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || strings.Contains(err.Error(), "reset by peer")
}
