package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"gonbatch/kernel/wire"
)

// inputPoll is the time between checks of whether the cell waits for input.
const inputPoll = 100 * time.Millisecond

// feedInput lets the user type the cell's input, until stop is called. If the client can't be
// asked, the cell's input is empty.
func (e *execution) feedInput(ctx context.Context, allowed bool) (stop func()) {
	r := e.relay
	if !allowed {
		r.linkInput(os.DevNull)
		return func() {}
	}
	pipe, err := r.openInput()
	if err != nil {
		r.log(fmt.Errorf("no input for the cell: %w", err))
		r.linkInput(os.DevNull)
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sleep(ctx, inputPoll) {
			if r.opts.Waiting() {
				e.askInput(ctx, pipe)
			}
		}
	}()
	return func() {
		cancel()
		<-done
		r.linkInput(os.DevNull) // A program that opens a pipe without a writer, such as one for an expression, waits forever.
		_ = pipe.Close()
	}
}

// openInput creates a new pipe, so that no cell reads input typed for another. It is open for
// writing too, so it never ends.
func (r *relay) openInput() (*os.File, error) {
	if err := os.Remove(r.opts.StdinPipe); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := syscall.Mkfifo(r.opts.StdinPipe, 0o600); err != nil {
		return nil, err
	}
	r.linkInput(r.opts.StdinPipe)
	return os.OpenFile(r.opts.StdinPipe, os.O_RDWR, 0)
}

// linkInput makes the cells' standard input a link to the target.
func (r *relay) linkInput(target string) {
	temporary := r.opts.Stdin + ".new"
	_ = os.Remove(temporary)
	if err := errors.Join(os.Symlink(target, temporary), os.Rename(temporary, r.opts.Stdin)); err != nil {
		r.log(err)
	}
}

// askInput asks the client whose cell runs for a line, and passes it to the cell.
func (e *execution) askInput(ctx context.Context, pipe *os.File) {
	r := e.relay
	typed := make(chan string, 1)
	r.setTyped(typed)
	defer r.setTyped(nil)
	r.reply(r.front.stdin, e.request, "input_request", object{"prompt": "", "password": e.prepared.Password})
	select {
	case <-ctx.Done():
	case line := <-typed:
		if _, err := pipe.WriteString(line + "\n"); err != nil {
			r.log(fmt.Errorf("input for the cell: %w", err))
		}
	}
}

func (r *relay) setTyped(typed chan string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.typed = typed
}

// onStdin handles the user's input. Input that the relay has not asked for goes to GoNB.
func (r *relay) onStdin(m *wire.Message) {
	r.mu.Lock()
	typed := r.typed
	r.mu.Unlock()
	var content struct{ Value string }
	if typed == nil || json.Unmarshal(m.Content, &content) != nil {
		r.sendBack(r.back.stdin, m)
		return
	}
	select {
	case typed <- content.Value:
	default: // typed twice
	}
}
