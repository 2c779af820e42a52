package relay

import (
	"context"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"

	"gonbatch/kernel/wire"
)

// dialRetry is how often a socket of GoNB is tried until it is there.
const dialRetry = 20 * time.Millisecond

// identity is the relay's name at GoNB's sockets. All of them need the same one: GoNB asks for input by the name of who executes.
const identity = "gonbatch"

// socket sends and receives messages. Both may be done at once.
type socket struct {
	zmq4.Socket
	codec *wire.Codec
	mu    sync.Mutex
}

func (s *socket) send(m *wire.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.SendMulti(zmq4.NewMsgFrom(s.codec.Encode(m)...))
}

// receive hands each message to f until the socket is closed. A message that is malformed or forged goes to refuse.
func (s *socket) receive(ctx context.Context, f func(*wire.Message), refuse func(error)) {
	for {
		frames, err := s.Recv()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			refuse(err)
			if !sleep(ctx, dialRetry) {
				return
			}
			continue
		}
		m, err := s.codec.Decode(frames.Frames)
		if err != nil {
			refuse(err)
			continue
		}
		f(m)
	}
}

// front are the sockets at which clients ask.
type front struct {
	shell, control, stdin, iopub *socket
	heartbeat                    zmq4.Socket
}

func listen(ctx context.Context, c Connection) (*front, error) {
	codec, err := wire.NewCodec(c.Scheme, c.Key)
	if err != nil {
		return nil, err
	}
	f := &front{
		shell:     &socket{Socket: zmq4.NewRouter(ctx), codec: codec},
		control:   &socket{Socket: zmq4.NewRouter(ctx), codec: codec},
		stdin:     &socket{Socket: zmq4.NewRouter(ctx), codec: codec},
		iopub:     &socket{Socket: zmq4.NewPub(ctx), codec: codec},
		heartbeat: zmq4.NewRep(ctx),
	}
	for port, s := range map[int]zmq4.Socket{c.Shell: f.shell, c.Control: f.control, c.Stdin: f.stdin, c.IOPub: f.iopub, c.Heartbeat: f.heartbeat} {
		if err := s.Listen(c.address(port)); err != nil {
			f.close()
			return nil, err
		}
	}
	return f, nil
}

func (f *front) close() {
	for _, s := range []zmq4.Socket{f.shell, f.control, f.stdin, f.iopub, f.heartbeat} {
		_ = s.Close()
	}
}

// beat echoes what clients send to see whether the kernel lives.
func (f *front) beat() {
	for {
		m, err := f.heartbeat.Recv()
		if err != nil || f.heartbeat.Send(m) != nil {
			return
		}
	}
}

// back are the sockets of GoNB.
type back struct {
	shell, stdin, iopub *socket
}

func newBack(ctx context.Context, c Connection) (*back, error) {
	codec, err := wire.NewCodec(c.Scheme, c.Key)
	if err != nil {
		return nil, err
	}
	options := []zmq4.Option{zmq4.WithID(zmq4.SocketIdentity(identity)), zmq4.WithDialerRetry(dialRetry), zmq4.WithDialerMaxRetries(-1)}
	return &back{
		shell: &socket{Socket: zmq4.NewDealer(ctx, options...), codec: codec},
		stdin: &socket{Socket: zmq4.NewDealer(ctx, options...), codec: codec},
		iopub: &socket{Socket: zmq4.NewSub(ctx, options[1:]...), codec: codec},
	}, nil
}

// dial waits until GoNB listens.
func (b *back) dial(c Connection) error {
	for port, s := range map[int]zmq4.Socket{c.Shell: b.shell, c.Stdin: b.stdin, c.IOPub: b.iopub} {
		if err := s.Dial(c.address(port)); err != nil {
			return err
		}
	}
	return b.iopub.SetOption(zmq4.OptionSubscribe, "")
}

func (b *back) close() {
	for _, s := range []zmq4.Socket{b.shell, b.stdin, b.iopub} {
		_ = s.Close()
	}
}

// sleep reports whether ctx lived on.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
