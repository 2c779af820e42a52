package logger

import (
	"fmt"
	"image"
	"sync"
)

// record is what loggers share: a lock, whether the logger is closed, and methods that ignore
// records, for formats that can't hold them.
type record struct {
	mu     sync.Mutex
	closed bool
}

// do calls f, unless the logger is closed. An error says what f does.
func (r *record) do(doing string, f func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := ErrClosed
	if !r.closed {
		err = f()
	}
	if err != nil {
		return fmt.Errorf("logger: %s: %w", doing, err)
	}
	return nil
}

// end calls f once, and marks the logger as closed.
func (r *record) end(doing string, f func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	if err := f(); err != nil {
		return fmt.Errorf("logger: %s: %w", doing, err)
	}
	return nil
}

// Params does nothing.
func (*record) Params(map[string]any) error { return nil }

// Image does nothing.
func (*record) Image(int64, string, image.Image) error { return nil }

// Histogram does nothing.
func (*record) Histogram(int64, string, []float64) error { return nil }

// Artifact does nothing.
func (*record) Artifact(string) error { return nil }
