package watch

import (
	"bufio"
	"encoding"
	"encoding/binary"
	"encoding/json"
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
	// Crash marks the connection that only carries a panic's text.
	Crash   bool
	Host    string
	Process rundir.Process
}

// report is any later message of a rank.
type report struct {
	State *State
	// Failure is the rank's own failure, which must end all ranks.
	Failure *rundir.Failure
	// Bye means that the connection will end because the rank's work is done.
	Bye bool
	// Ready means that the rank has nothing more to do before it ends.
	Ready bool
}

// order is a hub's message to a rank.
type order struct {
	Verdict *verdict
	// Bye means that the hub will end because its rank's work is done.
	Bye bool
}

// verdict ends all ranks.
type verdict struct {
	Failure rundir.Failure
	// Stacks asks the ranks to save their goroutines' stacks.
	Stacks bool
	// Stuck are processes that do not respond. A rank on the same machine kills them.
	Stuck []rundir.Process
}

// link is one end of a connection. Its methods may be called from several goroutines, except
// receive.
type link struct {
	conn   net.Conn
	in     *bufio.Reader
	mu     sync.Mutex
	broken error // What send has failed with.
}

func newLink(conn net.Conn) *link {
	return &link{conn: conn, in: bufio.NewReader(conn)}
}

// sendTimeout limits how long sending a message may take if the receiver does not read. It is
// longer than a busy machine delays this process.
const sendTimeout = 10 * time.Second

// lastMessages limits how long messages may still be received after send has failed.
const lastMessages = time.Second

// send sends a message: its length, and JSON or the message's own form. After an error nothing more
// is sent, because part of the message may have been, and receive soon ends too. Before that it
// returns what has arrived: a goodbye, if the other end has closed the connection.
func (l *link) send(message any) error {
	data, err := marshal(message)
	if err != nil {
		return err
	}
	packet := append(binary.AppendUvarint(nil, uint64(len(data))), data...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	l.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	if _, l.broken = l.conn.Write(packet); l.broken != nil {
		l.conn.SetReadDeadline(time.Now().Add(lastMessages))
	}
	return l.broken
}

func marshal(message any) ([]byte, error) {
	if own, ok := message.(encoding.BinaryMarshaler); ok {
		return own.MarshalBinary()
	}
	return json.Marshal(message)
}

// maxMessage limits the size of a message.
const maxMessage = 16 << 20

// receive receives a message. Only one goroutine may call it.
func (l *link) receive(message any) error {
	size, err := binary.ReadUvarint(l.in)
	if err != nil {
		return err
	}
	if size > maxMessage {
		return errMalformed
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(l.in, data); err != nil {
		return err
	}
	if own, ok := message.(encoding.BinaryUnmarshaler); ok {
		return own.UnmarshalBinary(data)
	}
	return json.Unmarshal(data, message)
}

func (l *link) close() { l.conn.Close() }

// abort closes the connection with a reset, because an orderly close means that the process has
// ended.
func (l *link) abort() {
	if tcp, ok := l.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // It fails on a closed connection, which needs no abort.
	}
	l.conn.Close()
}

// finished reports whether an error of receive is an orderly end of the connection. That means that
// the process at the other end has ended: its kernel closes the connection in this way however it
// ends. A connection that breaks in another way says nothing about the process.
//
// The end of the stream alone is not enough: after a reset, only the first read or write reports
// the reset. So finished asks the kernel for the connection's state.
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

// ended reports whether an error is the end of a stream.
func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
