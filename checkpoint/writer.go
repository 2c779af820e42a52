package checkpoint

import (
	"fmt"
	"sync"
)

// Writer saves snapshots in the background, one at a time, so that at most two are in memory: the one being written, and the one
// being taken. Its methods may be called from several goroutines.
type Writer struct {
	dir  *Dir
	mu   sync.Mutex // Held by a call of Save, Wait or Close.
	last chan error // Gets the result of the save under way; nil without one.
	done bool
}

// NewWriter returns a Writer that saves to a folder.
func NewWriter(d *Dir) *Writer { return &Writer{dir: d} }

// Save hands a snapshot over, and returns at once unless the one before is still being written: then it waits for that first. The
// caller must not touch the snapshot any more. The error is that of the one before: this one's comes from the next call of Save,
// Wait or Close. A failed save doesn't keep the next from being tried.
func (w *Writer) Save(s *Snapshot) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return fmt.Errorf("checkpoint: save step %d to %s: the writer is closed", s.Step, w.dir.Path())
	}
	err := w.wait()
	last := make(chan error, 1)
	w.last = last
	go func() { last <- w.dir.Save(s) }()
	return err
}

// Busy says whether a snapshot is being written, so that Save would wait.
func (w *Writer) Busy() bool {
	if !w.mu.TryLock() {
		return true
	}
	defer w.mu.Unlock()
	return w.last != nil && len(w.last) == 0
}

// Wait returns when nothing is being written any more, with the error of the last save that wasn't told yet.
func (w *Writer) Wait() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wait()
}

func (w *Writer) wait() error {
	if w.last == nil {
		return nil
	}
	err := <-w.last
	w.last = nil
	return err
}

// Close waits, and ends the writer. It may be called again.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
	return w.wait()
}
