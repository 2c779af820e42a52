package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"gonbatch/kernel/history"
	"gonbatch/kernel/magic"
	"gonbatch/kernel/wire"
)

// Options configure Run.
type Options struct {
	// Front is the clients' connection, on which the relay listens. Back is the connection that
	// GoNB opens when it is up.
	Front, Back Connection
	// StatusProgram is called as STATUSPROGRAM LINE COMMAND... for each shell command of a cell. It
	// appends a line "LINE STATUS" to StatusFile when the command ends.
	StatusProgram, StatusFile string
	// CellDir is the folder in which a cell's program leaves the values to show besides its output,
	// and the go command its findings.
	CellDir string
	// Stdin is the link that cells read as their standard input, StdinPipe a pipe for it. Waiting
	// reports whether a cell's process waits for input from the pipe.
	Stdin, StdinPipe string
	Waiting          func() bool
	// Assist answers questions about Go code.
	Assist Assistant
	// Magics runs the magics that GoNB does not have.
	Magics *magic.Magics
	// KeepFile is the Go file that the go command adds to programs so that they keep variables, in
	// KeepDir.
	KeepFile, KeepDir string
	// HistoryFile stores the executed cells. If it is empty, there is no history.
	HistoryFile string
	// Interrupt sends SIGINT to the processes of the running cell; again sends it to those that
	// have started since, and is called repeatedly until the cell has ended.
	Interrupt func() (again func())
	// Settle waits until GoNB has noticed the interrupts that it was sent: one that it notices late
	// would end the next cell.
	Settle func()
	// Ready is called when GoNB has started.
	Ready func()
	// Answered is called when GoNB has answered a request.
	Answered func() error
	// Log receives refused messages, and errors.
	Log io.Writer
}

type relay struct {
	opts  Options
	front *front
	back  *back
	queue *queue
	// questions are the requests that the Assistant answers.
	questions *queue
	// changed has a value when the Assistant may have to prepare again.
	changed chan struct{}
	history *history.Store
	stop    context.CancelFunc

	// ready is closed when GoNB answers.
	ready chan struct{}
	// count is the number of the last cell. Only the worker uses it.
	count int
	// void has the functions that are known to have no value.
	void map[string]bool
	// ranks is the number of ranks of the next cell, if %distributed has set it.
	ranks int
	// executed are the cells that were executed in this session, in order.
	executed []executed
	// kept are the variables that survive a cell, in order.
	kept []string
	// refused is when a kept variable last had a value that can't be kept.
	refused map[string]time.Time
	// passed counts what was passed on by the goroutine that reads GoNB's published messages.
	passed passed
	// interrupted is set while a cell runs that a client wants to end.
	interrupted atomic.Bool

	// running is the running cell that clients are shown; its mutex also orders the last statuses.
	// ended is set when the running cell has ended: it can't be interrupted any more.
	runningMu sync.Mutex
	running   *wire.Message
	ended     bool

	mu    sync.Mutex
	call  *call       // that GoNB is processing
	typed chan string // receives the user's input for the cell
}

// Run serves clients until one of them asks for a shutdown, or ctx ends; neither is an error. If
// ctx ends because of Died, running and waiting cells are answered with that error.
func Run(ctx context.Context, opts Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// GoNB's sockets outlive ctx a little; the clients' sockets are closed when the last reply has
	// been sent.
	sockets, closeSockets := context.WithCancel(context.WithoutCancel(ctx))
	defer closeSockets()
	r := &relay{opts: opts, queue: newQueue(), questions: newQueue(), changed: make(chan struct{}, 1), stop: cancel, ready: make(chan struct{}), void: map[string]bool{}, refused: map[string]time.Time{}}
	var err error
	if r.front, err = listen(opts.Front, r.log); err != nil {
		return fmt.Errorf("listen for clients: %w", err)
	}
	defer r.front.close()
	if r.back, err = newBack(sockets, opts.Back); err != nil {
		return err
	}
	defer r.back.close()
	if opts.HistoryFile != "" {
		if r.history, err = history.Open(opts.HistoryFile); err != nil {
			r.log(fmt.Errorf("no history: %w", err))
		}
	}
	if r.passed, err = newPassed(opts.CellDir); err != nil {
		return fmt.Errorf("count output: %w", err)
	}
	r.start(ctx)
	r.work(ctx)
	return nil
}

// start starts the goroutines that read the sockets. They end with the sockets.
func (r *relay) start(ctx context.Context) {
	go r.front.shell.receive(ctx, r.onShell, r.log)
	go r.front.control.receive(ctx, r.onControl, r.log)
	go r.front.stdin.receive(ctx, r.onStdin, r.log)
	go r.help(ctx)
	go r.warm(ctx)
	go func() {
		if err := r.back.dial(); err != nil {
			if ctx.Err() == nil {
				r.log(fmt.Errorf("connect to GoNB: %w", err))
			}
			return
		}
		go r.back.shell.receive(ctx, r.onReply, r.log)
		go r.back.stdin.receive(ctx, r.onInput, r.log)
		go r.back.iopub.receive(ctx, r.onPublished, r.log)
		r.probe(ctx)
	}()
}

// probe sends requests to GoNB until its published messages arrive: a subscription takes effect
// only some time after it is made.
func (r *relay) probe(ctx context.Context) {
	for {
		if m, err := wire.New("kernel_info_request", struct{}{}); err == nil {
			r.sendBack(r.back.shell, m)
		}
		select {
		case <-r.ready:
			return
		case <-ctx.Done():
			return
		case <-time.After(4 * dialRetry):
		}
	}
}

// onShell handles a request of the shell channel. Messages to widgets, interrupts and questions
// about code don't wait for the running cell.
func (r *relay) onShell(m *wire.Message) {
	switch m.Header.Type {
	case "comm_open", "comm_msg", "comm_close":
		r.onComm(m)
	case "interrupt_request":
		// VS Code interrupts over this channel. In the queue, the request would wait for the cell
		// that it must end.
		r.answer(r.front.shell, m)
	case "complete_request", "inspect_request":
		r.questions.add(m)
	default:
		r.queue.add(m)
	}
}

func (r *relay) onControl(m *wire.Message) { r.answer(r.front.control, m) }

// sendBack sends a message to GoNB without the client's identity, which GoNB need not know. GoNB
// exits if a part of the message is not a JSON object.
func (r *relay) sendBack(s *socket, m *wire.Message) {
	forwarded := *m
	forwarded.Identities = nil
	for _, part := range []*json.RawMessage{&forwarded.Parent, &forwarded.Metadata, &forwarded.Content} {
		if !bytes.HasPrefix(bytes.TrimSpace(*part), []byte("{")) {
			*part = json.RawMessage("{}")
		}
	}
	if err := s.send(&forwarded); err != nil {
		r.log(fmt.Errorf("send %s to GoNB: %w", m.Header.Type, err))
	}
}

func (r *relay) work(ctx context.Context) {
	for {
		m := r.queue.next(ctx)
		if m == nil {
			return
		}
		switch m.Header.Type {
		case "execute_request":
			r.execute(ctx, m)
		default:
			r.answer(r.front.shell, m)
		}
	}
}

// publish sends a message about parent to all clients.
func (r *relay) publish(parent *wire.Message, messageType string, content any) {
	m, err := parent.Publish(messageType, content)
	if err == nil {
		err = r.front.iopub.send(m)
	}
	if err != nil {
		r.log(fmt.Errorf("publish %s: %w", messageType, err))
	}
}

func (r *relay) status(parent *wire.Message, state string) {
	r.publish(parent, "status", map[string]string{"execution_state": state})
}

func (r *relay) reply(s *socket, request *wire.Message, messageType string, content any) {
	m, err := request.Reply(messageType, content)
	if err == nil {
		err = s.send(m)
	}
	if err != nil {
		r.log(fmt.Errorf("send %s: %w", messageType, err))
	}
}

func (r *relay) log(err error) {
	if r.opts.Log != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(r.opts.Log, "kernel: %v\n", err)
	}
}
