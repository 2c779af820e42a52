package logger

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// retryInterval is the time between two attempts to open a logger.
const retryInterval = time.Minute

// Deferred is a logger that is opened at its first record. Use it for a logger whose opening may
// take long or fail, such as that of a tracking server; below Multi, the training doesn't wait for
// it. If the logger can't be opened, records are lost and return the same error, until the next
// attempt after a minute. Hyper-parameters are kept until it is open.
type Deferred struct {
	forward
	open   func() (Logger, error)
	mu     sync.Mutex
	logger Logger
	params map[string]any // Waiting for the logger.
	failed error
	tried  time.Time
	closed bool
	now    func() time.Time
}

var (
	_ Logger      = (*Deferred)(nil)
	_ Rewinder    = (*Deferred)(nil)
	_ ModelLogger = (*Deferred)(nil)
)

// NewDeferred returns a logger that is opened by open.
func NewDeferred(open func() (Logger, error)) *Deferred {
	d := &Deferred{open: open, params: map[string]any{}, now: time.Now}
	d.pass = d.do
	return d
}

// Params records hyper-parameters, or keeps them until the logger is open.
func (d *Deferred) Params(params map[string]any) error {
	d.mu.Lock()
	maps.Copy(d.params, params)
	d.mu.Unlock()
	return d.do(func(Logger) error { return nil })
}

// do opens the logger if it isn't open, and records.
func (d *Deferred) do(record func(Logger) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("logger: %w", ErrClosed)
	}
	if err := d.ready(); err != nil {
		return err
	}
	var err error
	if len(d.params) > 0 {
		err = d.logger.Params(d.params)
		d.params = map[string]any{}
	}
	return errors.Join(err, record(d.logger))
}

// ready opens the logger, unless the last attempt was too recent.
func (d *Deferred) ready() error {
	if d.logger != nil {
		return nil
	}
	if d.failed != nil && d.now().Sub(d.tried) < retryInterval {
		return d.failed
	}
	d.logger, d.failed = d.open()
	d.tried = d.now() // After the attempt, which may have taken long.
	if d.failed != nil {
		d.logger = nil
	}
	return d.failed
}

// Close closes the logger if it was opened.
func (d *Deferred) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	if d.logger == nil {
		return nil
	}
	return d.logger.Close()
}
