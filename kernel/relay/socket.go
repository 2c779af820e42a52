package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"

	"gonbatch/kernel/wire"
	"gonbatch/kernel/zmtp"
)

// dialRetry is the time between attempts to connect to a socket of GoNB.
const dialRetry = 20 * time.Millisecond

// identity is the relay's name at GoNB's sockets. All of them need the same one: GoNB asks for
// input by the name of the requester.
const identity = "gonbatch"

// transport carries messages as frames. Send and Receive may be called concurrently.
type transport interface {
	Send(frames [][]byte) error
	Receive(ctx context.Context) ([][]byte, error)
	Close() error
}

// socket sends and receives messages.
type socket struct {
	transport
	codec *wire.Codec
}

func (s *socket) send(m *wire.Message) error { return s.Send(s.codec.Encode(m)) }

// receive passes each message to f until the socket is closed. Malformed and forged messages are
// errors, which go to refuse.
func (s *socket) receive(ctx context.Context, f func(*wire.Message), refuse func(error)) {
	for {
		frames, err := s.Receive(ctx)
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			refuse(err)
			if !sleep(ctx, dialRetry) {
				return
			}
			continue
		}
		m, err := s.codec.Decode(frames)
		if err != nil {
			refuse(err)
			continue
		}
		f(m)
	}
}

// publisher sends messages to all clients.
type publisher struct {
	*zmtp.Pub
	codec *wire.Codec
}

func (p *publisher) send(m *wire.Message) error { return p.Send(p.codec.Encode(m)) }

// front are the sockets for the clients. That for heartbeats answers by itself.
type front struct {
	shell, control, stdin, beats *socket
	iopub                        *publisher
	// all are all of them.
	all []io.Closer
}

// mostBeats is the size of the largest heartbeat, and of those that may wait for a client.
const mostBeats = 64 << 10

// listen listens for clients. It logs refused clients.
func listen(c Connection, log func(error)) (*front, error) {
	codec, err := wire.NewCodec(c.Scheme, c.Key)
	if err != nil {
		return nil, err
	}
	f, opts := &front{}, zmtp.Options{Log: log}
	// Anybody on this machine may send heartbeats: they have no signature.
	beats := zmtp.Options{Log: log, Message: mostBeats, Queue: mostBeats}
	for port, s := range map[int]**socket{c.Shell: &f.shell, c.Control: &f.control, c.Stdin: &f.stdin, c.Heartbeat: &f.beats} {
		if err == nil {
			var router *zmtp.Router
			limits := opts
			if s == &f.beats {
				limits = beats
			}
			router, err = opened(f, zmtp.ListenRouter, c.address(port), limits)
			*s = &socket{router, codec}
		}
	}
	if err == nil {
		f.iopub = &publisher{codec: codec}
		f.iopub.Pub, err = opened(f, zmtp.ListenPub, c.address(c.IOPub), opts)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	go f.echo()
	return f, nil
}

// echo sends heartbeats back until the sockets are closed: so clients see that this process lives.
func (f *front) echo() {
	for {
		beat, err := f.beats.Receive(context.Background())
		if err != nil {
			return
		}
		_ = f.beats.Send(beat) // A Router's Send never fails.
	}
}

// opened listens, and registers the socket to be closed.
func opened[S io.Closer](f *front, listen func(string, zmtp.Options) (S, error), address string, opts zmtp.Options) (S, error) {
	s, err := listen(address, opts)
	if err == nil {
		f.all = append(f.all, s)
	}
	return s, err
}

// close closes all sockets concurrently, after their last messages have been sent.
func (f *front) close() {
	var closed sync.WaitGroup
	for _, s := range f.all {
		closed.Go(func() { _ = s.Close() })
	}
	closed.Wait()
}

// dialed is a socket that connects to another one.
type dialed struct {
	socket zmq4.Socket
	mu     sync.Mutex
}

var _ transport = (*dialed)(nil)

func (d *dialed) Send(frames [][]byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.socket.SendMulti(zmq4.NewMsgFrom(frames...))
}

// Receive ends with the socket's own context, not with ctx.
func (d *dialed) Receive(context.Context) ([][]byte, error) {
	m, err := d.socket.Recv()
	return m.Frames, err
}

func (d *dialed) Close() error { return d.socket.Close() }

func (d *dialed) dial(address string) error { return d.socket.Dial(address) }

// newDealer returns a socket that sends requests under a name, newSub one that receives everything
// published.
func newDealer(ctx context.Context, name string) *dialed {
	return &dialed{socket: zmq4.NewDealer(ctx, append(dialOptions(), zmq4.WithID(zmq4.SocketIdentity(name)))...)}
}

func newSub(ctx context.Context) *dialed {
	d := &dialed{socket: zmq4.NewSub(ctx, dialOptions()...)}
	_ = d.socket.SetOption(zmq4.OptionSubscribe, "") // The subscription is sent again with each connection.
	return d
}

func dialOptions() []zmq4.Option {
	return []zmq4.Option{zmq4.WithDialerRetry(dialRetry), zmq4.WithDialerMaxRetries(-1)}
}

// back are the sockets connected to GoNB.
type back struct {
	shell, stdin, iopub *socket
	// addresses are GoNB's addresses.
	addresses map[*dialed]string
}

func newBack(ctx context.Context, c Connection) (*back, error) {
	codec, err := wire.NewCodec(c.Scheme, c.Key)
	if err != nil {
		return nil, err
	}
	shell, stdin, iopub := newDealer(ctx, identity), newDealer(ctx, identity), newSub(ctx)
	return &back{
		shell: &socket{shell, codec}, stdin: &socket{stdin, codec}, iopub: &socket{iopub, codec},
		addresses: map[*dialed]string{shell: c.address(c.Shell), stdin: c.address(c.Stdin), iopub: c.address(c.IOPub)},
	}, nil
}

// dial waits until GoNB listens.
func (b *back) dial() error {
	for s, address := range b.addresses {
		if err := s.dial(address); err != nil {
			return err
		}
	}
	return nil
}

func (b *back) close() {
	for s := range b.addresses {
		_ = s.Close()
	}
}

// sleep reports whether ctx is still alive after d.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
