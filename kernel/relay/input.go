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

// inputPoll is how often it is looked whether the cell waits for input.
const inputPoll = 100 * time.Millisecond

// feedInput lets the user type what the cell reads, until the function that it returns is called. A
// client that cannot be asked gives the cell an empty input.
func (e *execution) feedInput(ctx context.Context, allowed bool) (stop func()) {
	r := e.relay
	if r.opts.Stdin == "" {
		return func() {}
	}
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
		_ = pipe.Close()
	}
}

// openInput makes a new pipe, so that no cell reads what was typed for another. Open for writing
// too, it never ends.
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

// askInput asks the client that executes the cell for a line, and hands it to the cell.
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

// onStdin takes what the user typed; GoNB gets what the relay has not asked for.
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
