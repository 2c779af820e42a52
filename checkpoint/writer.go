package checkpoint

import (
	"fmt"
	"sync"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// Writer saves snapshots in the background, one at a time. At most two are in memory: the one being
// written and the one being taken. Its methods may be called concurrently.
type Writer struct {
	dir  *Dir
	mu   sync.Mutex // Held by a call of Save, Wait or Close.
	last chan error // Receives the result of the save under way; nil if there is none.
	done bool
	// spare has the tensors of the last written snapshot, until Take reuses their memory.
	spare chan map[string]*tensors.Tensor
}

// NewWriter returns a Writer that saves to a folder.
func NewWriter(d *Dir) *Writer {
	return &Writer{dir: d, spare: make(chan map[string]*tensors.Tensor, 1)}
}

// Take takes a snapshot like the function Take, but several times as fast, because it reuses the
// memory of one that this writer has written. To do so, it keeps the memory of one snapshot.
func (w *Writer) Take(store *model.Store, owner Owner) (*Snapshot, error) {
	select {
	case spare := <-w.spare:
		return take(store, owner, spare)
	default:
		return Take(store, owner)
	}
}

// Save starts writing a snapshot and its tensors in the background, and returns immediately. If the
// previous snapshot is still being written, it waits for that first. The caller must not use the
// snapshot any more. The error is that of the previous save; the error of this one is returned by
// the next call of Save, Wait or Close. After a failed save, the next one is tried again.
func (w *Writer) Save(s *Snapshot) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return fmt.Errorf("checkpoint: save step %d to %s: the writer is closed", s.Step, w.dir.Path())
	}
	err := w.wait()
	last := make(chan error, 1)
	w.last = last
	go func() {
		err := w.dir.Save(s)
		w.recycle(s)
		last <- err
	}()
	return err
}

// recycle keeps a snapshot's memory for the next one.
func (w *Writer) recycle(s *Snapshot) {
	select {
	case w.spare <- s.Tensors:
	default: // There is already one.
	}
}

// Release waits until nothing is being written, and frees the memory that is kept for the next
// snapshot. Call it if no snapshot will be taken soon. An error of the last save is returned by the
// next call of Save, Wait or Close.
func (w *Writer) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last != nil {
		w.last <- <-w.last
	}
	select {
	case <-w.spare:
	default:
	}
}

// Wait returns when nothing is being written any more, with the error of the last save if it hasn't
// been returned yet.
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

// Close waits for the last save and closes the writer. It may be called again.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
	return w.wait()
}
