package keyvalue

import (
	"bytes"
	"context"
	"sync"
)

// memory is the store itself.
type memory struct {
	mu      sync.Mutex
	entries map[string]*entry
}

// entry is the value of a key, or a key that somebody waits for.
type entry struct {
	set   chan struct{} // Closed when there is a value.
	value []byte
	// token is the token of the Put that set the value.
	token string
}

func newMemory() *memory { return &memory{entries: map[string]*entry{}} }

// entry returns the entry of a key. The lock is held.
func (m *memory) entry(key string) *entry {
	e, ok := m.entries[key]
	if !ok {
		e = &entry{set: make(chan struct{})}
		m.entries[key] = e
	}
	return e
}

func (e *entry) isSet() bool {
	select {
	case <-e.set:
		return true
	default:
		return false
	}
}

// put sets a key's value. The token distinguishes a rank that asks again because the answer was
// lost from another rank that puts the same key.
func (m *memory) put(key string, value []byte, token string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(key)
	switch {
	case !e.isSet():
		e.value, e.token = bytes.Clone(value), token
		close(e.set)
	case e.token != token:
		return ErrExists
	}
	return nil
}

// get waits for a key's value.
func (m *memory) get(ctx context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	e := m.entry(key)
	m.mu.Unlock()
	select {
	case <-e.set:
		return bytes.Clone(e.value), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (m *memory) tryGet(key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[key]; ok && e.isSet() {
		return bytes.Clone(e.value), nil
	}
	return nil, ErrNotFound
}
