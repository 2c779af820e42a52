package relay

import (
	"context"
	"slices"
	"sync"

	"gonbatch/kernel/wire"
)

// queue holds the waiting requests of the shell channel. Its length is not limited.
type queue struct {
	mu       sync.Mutex
	messages []*wire.Message
	added    chan struct{}
}

func newQueue() *queue { return &queue{added: make(chan struct{}, 1)} }

func (q *queue) add(m *wire.Message) {
	q.mu.Lock()
	q.messages = append(q.messages, m)
	q.mu.Unlock()
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// next waits for a message; it returns nil when ctx ends.
func (q *queue) next(ctx context.Context) *wire.Message {
	for {
		q.mu.Lock()
		if len(q.messages) > 0 {
			m := q.messages[0]
			q.messages = q.messages[1:]
			q.mu.Unlock()
			return m
		}
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-q.added:
		}
	}
}

// take removes the messages of a type and returns them.
func (q *queue) take(messageType string) (taken []*wire.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = slices.DeleteFunc(q.messages, func(m *wire.Message) bool {
		if m.Header.Type != messageType {
			return false
		}
		taken = append(taken, m)
		return true
	})
	return taken
}
