package zmtp

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/tests/jupyter"
)

//go:embed testdata/clients.py
var clients string

// TestClients lets libzmq, through pyzmq, talk to all kinds of sockets, over TCP and over a socket
// in the file system.
func TestClients(t *testing.T) {
	python := jupyter.Python(t)
	for _, transport := range []string{"tcp", "ipc"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, transport, Options{})
			go b.answer()
			out, err := bounded.CombinedOutput(exec.Command(python, "-c", clients, b.address(b.router.server), b.address(b.pub.server)))
			if err != nil || string(out) != "ok\n" {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestRefused: a client that is silent, malformed or greedy is refused, and the socket still serves
// others after each.
func TestRefused(t *testing.T) {
	greeting := greetingOf("NULL", 3)
	ready := func(properties ...string) []byte {
		var data []byte
		for i := 0; i < len(properties); i += 2 {
			data = append(data, property(properties[i], properties[i+1])...)
		}
		return append(bytes.Clone(greeting), encodeCommand("READY", data)...)
	}
	dealer := ready("Socket-Type", "DEALER")
	tests := []struct {
		name string
		sent []byte
		log  string
	}{
		{name: "silent", log: "i/o timeout"},
		{name: "a web browser", sent: []byte("GET / HTTP/1.1\r\n\r\n"), log: "does not speak ZMTP 3"},
		{name: "half a greeting", sent: greeting[:30], log: "i/o timeout"},
		{name: "another mechanism", sent: greetingOf("CURVE", 3), log: `mechanism "CURVE"`},
		{name: "an old version", sent: greetingOf("NULL", 1), log: "version 1"},
		{name: "no metadata", sent: greeting, log: "i/o timeout"},
		{name: "a message before the handshake", sent: append(bytes.Clone(greeting), encode([][]byte{[]byte("x")})...), log: "want the command READY"},
		{name: "a socket that does not fit", sent: ready("Socket-Type", "SUB"), log: `type "SUB" can't connect to ROUTER`},
		{name: "no type", sent: ready(), log: `type ""`},
		{name: "another's name", sent: ready("Socket-Type", "DEALER", "Identity", "\x00abc"), log: "first is not zero"},
		{name: "a long name", sent: ready("Socket-Type", "DEALER", "Identity", strings.Repeat("x", 256)), log: "at most 255 bytes"},
		{name: "endless metadata", sent: append(bytes.Clone(greeting), flagCommand|flagLong, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), log: "are accepted"},
		{name: "a property without an end", sent: append(bytes.Clone(greeting), encodeCommand("READY", []byte("\x20Socket"))...), log: "malformed property"},
		{name: "a frame of many exabytes", sent: append(bytes.Clone(dealer), flagLong, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), log: "at most 1048576 are accepted"},
		{name: "flags that are not there", sent: append(bytes.Clone(dealer), 0x40, 0), log: "flags 0x40"},
		{name: "half a message", sent: append(bytes.Clone(dealer), 0, 10, 'x'), log: "i/o timeout"},
		{name: "messages without an end", sent: append(bytes.Clone(dealer), bytes.Repeat([]byte{flagMore, 0}, mostFrames+1)...), log: "more than 10000 frames"},
		{name: "a message that grows too large", sent: append(bytes.Clone(dealer), bytes.Repeat(append([]byte{flagMore, 255}, make([]byte, 255)...), 5000)...), log: "are accepted"},
		{name: "a command within a message", sent: append(bytes.Clone(dealer), flagMore, 0, flagCommand, 0), log: "a command within a message"},
		{name: "a malformed command", sent: append(bytes.Clone(dealer), flagCommand, 1, 9), log: "malformed command"},
	}
	b := newBed(t, "tcp", Options{Handshake: time.Second, Part: time.Second, Message: 1 << 20})
	go b.answer()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b.log.reset()
			bad := b.dial(b.router.server)
			go func() { _, _ = bad.Write(tt.sent) }()
			b.served(b.router.server, "DEALER") // while the other is still there
			if _, err := io.Copy(io.Discard, bad); err != nil && !isReset(err) {
				t.Errorf("the connection goes on: %v", err)
			}
			b.log.wait(t, tt.log)
			b.served(b.router.server, "DEALER")
		})
	}
}

// TestSilent: more silent connections than the limit keep nobody out.
func TestSilent(t *testing.T) {
	b := newBed(t, "tcp", Options{Pending: 10, Handshake: time.Hour})
	go b.answer()
	var silent []net.Conn
	for range 50 {
		silent = append(silent, b.dial(b.router.server))
	}
	b.served(b.router.server, "DEALER")
	ended := 0
	for _, c := range silent[:30] {
		if _, err := io.Copy(io.Discard, c); err == nil || isReset(err) {
			ended++
		}
	}
	if ended != 30 {
		t.Errorf("of the oldest 30 connections %d have ended", ended)
	}
}

// TestMany: at the maximum number of clients, another one is refused; when one leaves, there is
// room for another.
func TestMany(t *testing.T) {
	b := newBed(t, "tcp", Options{Connections: 3})
	go b.answer()
	var clients []*client
	for range 3 {
		clients = append(clients, b.connect(b.router.server, "DEALER"))
	}
	for _, c := range clients {
		c.ask("x") // so that it is known to be there
	}
	refused := b.connect(b.router.server, "DEALER")
	if _, err := refused.in.Peek(1); err == nil {
		t.Error("a fourth client is served")
	}
	b.log.wait(t, "there are 3 connections already")
	_ = clients[0].Close()
	waitFor(t, "the first client to be gone", func() bool { return len(b.router.server.list(anyConn)) == 2 })
	b.served(b.router.server, "DEALER")
}

// TestAcceptError: a temporary error of accept, such as too many open files, ends nothing.
func TestAcceptError(t *testing.T) {
	b := newBed(t, "tcp", Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServer("tcp://127.0.0.1:0", "ROUTER", Options{Log: b.log.add})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.listener.Close()
	s.listener = &failing{Listener: l, left: 3}
	s.serve = func(c *conn, frames [][]byte) error { s.send([]*conn{c}, encode(frames)); return nil }
	s.start()
	b.connect(s, "REQ").ask("x")
	b.log.wait(t, "too many open files")
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

type failing struct {
	net.Listener
	left int
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left--; f.left >= 0 {
		return nil, fmt.Errorf("accept: too many open files")
	}
	return f.Listener.Accept()
}

// TestStalled: a client that subscribes and does not read is disconnected when its queue is full;
// another client gets everything, without waiting longer than that.
func TestStalled(t *testing.T) {
	const size, count = 10_000, 3000
	b := newBed(t, "tcp", Options{Queue: 1 << 20, Stall: 3 * time.Second})
	stalled, reading := b.subscribe(""), b.subscribe("")
	go func() {
		for i := range count {
			b.pub.Wait()
			_ = b.pub.Send([][]byte{[]byte("topic"), []byte(fmt.Sprint(i)), make([]byte, size)})
		}
	}()
	for i := range count {
		if got := reading.message(); string(got[1]) != fmt.Sprint(i) || len(got[2]) != size {
			t.Fatalf("message %d is %q", i, got[1])
		}
	}
	b.log.wait(t, "it has read nothing for 3s")
	waitFor(t, "the stalled client to be gone", func() bool { return len(b.pub.server.list(anyConn)) == 1 })
	_ = stalled.Close()
}

// TestSlow: a client that reads slowly gets everything, and its queue stays within the limit.
func TestSlow(t *testing.T) {
	const size, count, limit = 100_000, 300, 1 << 20
	b := newBed(t, "tcp", Options{Queue: limit, Stall: time.Minute})
	slow := b.subscribe("")
	server := b.pub.server.list(anyConn)[0]
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range count {
			b.pub.Wait()
			_ = b.pub.Send([][]byte{[]byte("topic"), []byte(fmt.Sprint(i)), make([]byte, size)})
		}
	}()
	for i := range count {
		if i%50 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
		server.out.mu.Lock()
		waiting := server.out.size
		server.out.mu.Unlock()
		if waiting > limit+size+1000 {
			t.Fatalf("%d bytes wait, the limit is %d", waiting, limit)
		}
		if got := slow.message(); string(got[1]) != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, got[1])
		}
	}
	<-sent
}

// TestOverflow: sending without waiting disconnects a client whose queue is too long, and costs no
// more memory.
func TestOverflow(t *testing.T) {
	b := newBed(t, "tcp", Options{Queue: 1 << 20})
	c := b.connect(b.router.server, "DEALER")
	c.write(encode([][]byte{[]byte("x")}))
	frames, err := b.router.Receive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		_ = b.router.Send([][]byte{frames[0], make([]byte, 10_000)})
	}
	b.log.wait(t, "does not read what it is sent")
}

// TestClose: messages sent before Close arrive.
func TestClose(t *testing.T) {
	const count = 1000
	b := newBed(t, "tcp", Options{Flush: time.Minute})
	c := b.subscribe("")
	for i := range count {
		_ = b.pub.Send([][]byte{[]byte(fmt.Sprint(i)), make([]byte, 10_000)})
	}
	closed := make(chan error)
	go func() { closed <- b.pub.Close() }()
	for i := range count {
		if got := c.message(); string(got[0]) != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, got[0])
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := c.in.Peek(1); err == nil {
		t.Error("more comes")
	}
}

// TestAbandonedSocket: the socket of a killed process is replaced; that of a live process, or
// another file, is not.
func TestAbandonedSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ListenRouter("ipc://"+path, Options{}); err == nil {
		t.Error("a socket at which somebody listens is replaced")
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	router, err := ListenRouter("ipc://"+path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := router.Close(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenRouter("ipc://"+path, Options{}); err == nil {
		t.Error("a file is replaced")
	}
}

// logBuffer collects errors of several goroutines.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBuffer) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(&l.text, err)
}

func (l *logBuffer) reset() { l.mu.Lock(); defer l.mu.Unlock(); l.text.Reset() }

func (l *logBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.text.String() }

func (l *logBuffer) wait(t *testing.T, text string) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%q in the log", text), func() bool { return strings.Contains(l.String(), text) })
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatalf("waited 5 minutes for %s", what)
}
