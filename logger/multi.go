package logger

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// MultiOptions has the limits of a Multi. The zero value suits a training run.
type MultiOptions struct {
	// Queue is the number of records that may wait for a logger. Further ones are lost. Default:
	// 1,024.
	Queue int
	// Timeout is the time after which a logger that hasn't finished a record is reported. Default:
	// 30 s.
	Timeout time.Duration
	// CloseTimeout limits Close for all loggers together. Default: 30 s.
	CloseTimeout time.Duration
	// Stderr receives the reports. Default: os.Stderr.
	Stderr io.Writer
}

// Multi passes each record to several loggers, each in its own goroutine with a bounded queue. A
// logger that fails, panics or hangs neither stops nor slows the training or another logger. Only
// its first failure is reported. Records are lost if the logger fails or its queue is full; it
// still gets later ones, since a server may come back.
type Multi struct {
	forward // Its methods queue records. They never block on a logger.
	options MultiOptions
	mu      sync.RWMutex // held for writing while closed is set, so that no record is queued after the queues are closed
	closed  bool
	ended   chan struct{} // Closed when Close has finished.
	workers []*worker
}

var (
	_ Logger      = (*Multi)(nil)
	_ Rewinder    = (*Multi)(nil)
	_ ModelLogger = (*Multi)(nil)
)

// NewMulti returns a Multi that passes records to the loggers. From then on only Multi may call and
// close them.
func NewMulti(o MultiOptions, loggers ...Logger) *Multi {
	if o.Queue <= 0 {
		o.Queue = 1024
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.CloseTimeout <= 0 {
		o.CloseTimeout = 30 * time.Second
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	m := &Multi{options: o, ended: make(chan struct{})}
	m.pass = m.each
	var reporting sync.Mutex
	report := func(format string, args ...any) {
		reporting.Lock()
		defer reporting.Unlock()
		_, _ = fmt.Fprintf(o.Stderr, format, args...) // There is nowhere else to report an error.
	}
	for _, l := range loggers {
		m.workers = append(m.workers, startWorker(l, o, report))
	}
	return m
}

// each queues a record for every logger. Only a call after Close is an error.
func (m *Multi) each(record func(Logger) error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return fmt.Errorf("logger: %w", ErrClosed)
	}
	for _, w := range m.workers {
		w.queue(record)
	}
	return nil
}

// Close waits until the loggers have processed their queues and are closed, for at most
// CloseTimeout. The error has each logger's first failure and the number of its lost records. A
// logger that hangs is abandoned with its goroutine.
func (m *Multi) Close() error {
	m.mu.Lock()
	already := m.closed
	m.closed = true
	m.mu.Unlock()
	if already {
		<-m.ended // The process may end when any call returns.
		return nil
	}
	defer close(m.ended)
	for _, w := range m.workers {
		close(w.records)
	}
	limit := time.NewTimer(m.options.CloseTimeout)
	defer limit.Stop()
	expired := false
	var errs []error
	for _, w := range m.workers {
		if !expired {
			select {
			case <-w.done:
			case <-limit.C:
				expired = true
			}
		}
		errs = append(errs, w.result(m.options.CloseTimeout))
	}
	return errors.Join(errs...)
}
