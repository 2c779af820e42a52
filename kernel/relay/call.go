package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gonbatch/kernel/wire"
)

// call is a request that GoNB is processing.
type call struct {
	request *wire.Message
	// published gets the messages that GoNB publishes about the request, except for its status; nil
	// drops them.
	published func(*wire.Message)
	reply     chan *wire.Message
	idle      chan struct{}
}

// callBack sends a request with this content to GoNB, and waits until GoNB has replied and all
// messages that it published have been handled. It returns nil if ctx ends first.
func (r *relay) callBack(ctx context.Context, request *wire.Message, content json.RawMessage, published func(*wire.Message)) *wire.Message {
	select {
	case <-ctx.Done():
		return nil
	case <-r.ready:
	}
	c := &call{request: request, published: published, reply: make(chan *wire.Message, 1), idle: make(chan struct{}, 1)}
	r.setCall(c)
	defer r.setCall(nil)
	forwarded := *request
	forwarded.Content = content
	r.sendBack(r.back.shell, &forwarded)
	var reply *wire.Message
	select {
	case <-ctx.Done():
		return nil
	case reply = <-c.reply:
	}
	select {
	case <-ctx.Done():
	case <-c.idle:
	}
	if err := r.opts.Answered(); err != nil {
		r.log(err)
	}
	return reply
}

func (r *relay) setCall(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call = c
}

// callOf returns the call to which a message from GoNB belongs, or nil.
func (r *relay) callOf(m *wire.Message) *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.call == nil || r.call.request.Header.ID != m.ParentID {
		return nil
	}
	return r.call
}

func (r *relay) onReply(m *wire.Message) {
	if c := r.callOf(m); c != nil {
		select {
		case c.reply <- m:
		default:
			r.log(fmt.Errorf("GoNB replied twice to %s", c.request.Header.Type))
		}
	}
}

// onPublished handles a message that GoNB publishes. The relay sends its own statuses.
func (r *relay) onPublished(m *wire.Message) {
	c := r.callOf(m)
	if m.Header.Type == "status" {
		r.onStatus(c, m)
		return
	}
	if m.Header.Type == "stream" {
		_, text := stream(m)
		defer func() {
			if err := r.passed.add(len(text)); err != nil {
				r.log(err)
			}
		}()
	}
	m.Identities = [][]byte{[]byte(m.Header.Type)}
	if c == nil {
		r.pass(m)
		return
	}
	m.Parent = c.request.RawHeader
	if c.published != nil {
		c.published(m)
	}
}

func (r *relay) onStatus(c *call, m *wire.Message) {
	var content struct {
		State string `json:"execution_state"`
	}
	if err := json.Unmarshal(m.Content, &content); err != nil {
		r.log(err)
		return
	}
	if c == nil {
		r.setReady()
		return
	}
	if content.State == "idle" {
		select {
		case c.idle <- struct{}{}:
		default:
		}
	}
}

// setReady must be called only by the goroutine that reads GoNB's published messages.
func (r *relay) setReady() {
	select {
	case <-r.ready:
	default:
		close(r.ready)
		r.opts.Ready()
	}
}

// pass publishes a message from GoNB unchanged. It waits for clients that read more slowly than
// GoNB publishes; the relay's own messages, which are few, don't wait.
func (r *relay) pass(m *wire.Message) {
	r.front.iopub.Wait()
	if err := r.front.iopub.send(m); err != nil {
		r.log(fmt.Errorf("publish %s: %w", m.Header.Type, err))
	}
}

// onInput asks the client whose cell runs for a line of input.
func (r *relay) onInput(m *wire.Message) {
	c := r.callOf(m)
	if c == nil {
		return
	}
	m.Identities, m.Parent = c.request.Identities, c.request.RawHeader
	if err := r.front.stdin.send(m); err != nil {
		r.log(fmt.Errorf("ask for input: %w", err))
	}
}

// forward answers a request about code. It answers questions about magics itself, and the Assistant
// the others.
func (r *relay) forward(ctx context.Context, request *wire.Message) {
	r.status(request, "busy")
	defer r.setIdle(request)
	content, ok := r.assist(ctx, request)
	if !ok {
		content = r.askAssistant(ctx, request)
	}
	r.reply(r.front.shell, request, strings.Replace(request.Header.Type, "_request", "_reply", 1), content)
}
