package watch

import (
	"bufio"
	"encoding/gob"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gonbatch/internal/rundir"
)

// hello is a rank's first message to a hub.
type hello struct {
	Rank int
	// Crash marks the connection that only carries a panic's last words.
	Crash   bool
	Host    string
	Process rundir.Process
}

// report is all later messages of a rank.
type report struct {
	State *State
	// Failure is the rank's own: it asks for the end of all.
	Failure *rundir.Failure
	// Bye says that the connection ends because the rank's work is done.
	Bye bool
	// Ready says that the rank has nothing more to do before it ends.
	Ready bool
}

// order is a hub's message to a rank.
type order struct {
	Verdict *verdict
	// Bye says that the hub ends because its rank's work is done.
	Bye bool
}

// verdict ends all ranks.
type verdict struct {
	Failure rundir.Failure
	// Stacks asks the ranks to save their goroutines' stacks.
	Stacks bool
	// Stuck are processes that do not answer: a rank on the same machine kills them.
	Stuck []rundir.Process
}

// link is one end of a connection. Its methods may be called from several goroutines.
type link struct {
	conn net.Conn
	in   *bufio.Reader
	mu   sync.Mutex
	enc  *gob.Encoder
	dec  *gob.Decoder
}

func newLink(conn net.Conn) *link {
	in := bufio.NewReader(conn)
	return &link{conn: conn, in: in, enc: gob.NewEncoder(conn), dec: gob.NewDecoder(in)}
}

// sendTimeout bounds a message to a process that does not read. It is longer than a busy machine
// holds up this process.
const sendTimeout = 10 * time.Second

// send sends a message. After an error the link is broken: part of the message may be on its way.
func (l *link) send(message any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	err := l.enc.Encode(message)
	if err != nil {
		l.abort()
	}
	return err
}

// receive is for one goroutine.
func (l *link) receive(message any) error { return l.dec.Decode(message) }

func (l *link) close() { l.conn.Close() }

// abort ends the connection without the orderly end by which a process that ends is known.
func (l *link) abort() {
	if tcp, ok := l.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // It fails on a closed connection, which needs no abort.
	}
	l.conn.Close()
}

// finished reports whether an error of receive is the orderly end of the connection, which is that
// of the process at the other end: its kernel makes one however the process ends. A connection that
// breaks otherwise says nothing of the process.
//
// The end of a stream alone does not tell: after a reset, too, only the first to read or write
// hears of that. So the kernel is asked which it was.
func (l *link) finished(err error) bool {
	tcp, ok := l.conn.(*net.TCPConn)
	if !ended(err) || !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	closed := false
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		closed = err == nil && info.State == unix.BPF_TCP_CLOSE_WAIT
	})
	return err == nil && closed
}

// ended reports whether an error is that of a stream's end.
func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
