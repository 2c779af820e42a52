package logger

import (
	"fmt"
	"sync"
	"time"

	"gonbatch/internal/plural"
)

// worker calls one logger of a Multi, in its own goroutine, which ends when the queue is closed and
// the logger's last call has returned.
type worker struct {
	logger  Logger
	timeout time.Duration
	report  func(format string, args ...any)
	records chan func(Logger) error
	done    chan struct{}

	mu    sync.Mutex
	first error // the first failure
	lost  int   // records that failed or found the queue full
	slow  bool  // a record has taken too long, which was reported
}

func startWorker(l Logger, o MultiOptions, report func(string, ...any)) *worker {
	w := &worker{
		logger: l, timeout: o.Timeout, report: report,
		records: make(chan func(Logger) error, o.Queue), done: make(chan struct{}),
	}
	go w.run()
	return w
}

func (w *worker) run() {
	defer close(w.done)
	for record := range w.records {
		if err := w.call(record); err != nil {
			w.failed(err, 1)
		}
	}
	if err := w.call(Logger.Close); err != nil {
		w.failed(err, 0)
	}
}

// call calls the logger. It turns a panic into an error, and reports a call that takes too long
// while it is still running.
func (w *worker) call(record func(Logger) error) (err error) {
	watch := time.AfterFunc(w.timeout, w.hangs)
	defer watch.Stop()
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v", problem)
		}
	}()
	return record(w.logger)
}

// queue queues a record for the logger, or loses it.
func (w *worker) queue(record func(Logger) error) {
	select {
	case w.records <- record:
	default:
		w.failed(fmt.Errorf("it is too slow: its queue of %d records is full, and further ones are lost", cap(w.records)), 1)
	}
}

// failed records a failure. It reports the first one: the training continues, so nothing else
// would.
func (w *worker) failed(err error, lost int) {
	w.mu.Lock()
	w.lost += lost
	isFirst := w.first == nil
	if isFirst {
		w.first = err
	}
	w.mu.Unlock()
	if isFirst {
		w.report("logger %T failed, and records are lost; the training continues: %v\n", w.logger, err)
	}
}

// hangs reports that a record takes too long. It is not a failure: the logger may go on, and
// records wait for it.
func (w *worker) hangs() {
	w.mu.Lock()
	first := !w.slow && w.first == nil
	w.slow = true
	w.mu.Unlock()
	if first {
		w.report("logger %T: a record has taken more than %s, and others wait; the training continues\n", w.logger, w.timeout)
	}
}

// result returns the failures. limit is how long Close has waited if the logger isn't done.
func (w *worker) result(limit time.Duration) error {
	unfinished := false
	select {
	case <-w.done:
	default:
		unfinished = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case unfinished && w.first == nil:
		return fmt.Errorf("logger %T: not closed within %s, %s lost", w.logger, limit, plural.Of(w.lost+len(w.records), "record"))
	case unfinished:
		return fmt.Errorf("logger %T: not closed within %s, %s lost: %w", w.logger, limit, plural.Of(w.lost+len(w.records), "record"), w.first)
	case w.first != nil:
		return fmt.Errorf("logger %T: %s lost: %w", w.logger, plural.Of(w.lost, "record"), w.first)
	}
	return nil
}
