// Package saved is where a training run is saved: its folder of checkpoints, other programs that
// write to it, and each rank's random numbers.
package saved

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/checkpoint"
	"gonbatch/distributed"
)

// Folder is the folder of a training run's checkpoints. Rank 0 writes and reads them; the others
// only know that there is a folder. A nil Folder does nothing.
type Folder struct {
	Path   string
	Dir    *checkpoint.Dir // Nil on other ranks.
	world  *distributed.World
	writer *checkpoint.Writer   // As above.
	Self   string               // Identifies this trainer in the checkpoints that it writes. Empty on other ranks.
	known  map[string]time.Time // The times of the checkpoints that were there when Fit began, by their folders.
}

// Open opens a folder. It is collective.
func Open(w *distributed.World, path string, o checkpoint.Options) (*Folder, error) {
	f := &Folder{Path: path, world: w}
	err := w.OnMain(func() (err error) { f.Dir, err = checkpoint.Open(path, o); return err })
	if err != nil {
		return nil, err
	}
	if w.IsMain() {
		f.writer, f.Self = checkpoint.NewWriter(f.Dir), rand.Text()
		w.OnClose(f.writer.Close)
	}
	return f, nil
}

// Close finishes the writes under way, on rank 0.
func (f *Folder) Close() error {
	if f == nil || f.writer == nil {
		return nil
	}
	return f.writer.Close()
}

// Name is the folder's path; empty if there is none.
func (f *Folder) Name() string {
	if f == nil {
		return ""
	}
	return f.Path
}

// Wait blocks until the checkpoints are on disk. Only rank 0 waits.
func (f *Folder) Wait() error {
	if f == nil || f.writer == nil {
		return nil
	}
	return f.world.Alone("writes a checkpoint", f.writer.Wait)
}

// Release finishes the writes under way and frees the memory of the last snapshot: a sweep may
// train many times before it closes the world.
func (f *Folder) Release() {
	if f != nil && f.writer != nil {
		_ = f.world.Alone("writes a checkpoint", func() error { f.writer.Release(); return nil })
	}
}

// NewestWeights returns the path of the weights in the newest checkpoint, on rank 0; empty if there
// is none.
func (f *Folder) NewestWeights() (string, error) {
	all, err := checkpoint.List(f.Path)
	for _, info := range all {
		if info.Valid() {
			return filepath.Join(info.Path, checkpoint.WeightsFile), nil
		}
	}
	return "", err
}

// Take takes a snapshot for Save, on rank 0, unless another training run writes to the folder. run
// is the name of this run.
func (f *Folder) Take(store *model.Store, owner checkpoint.Owner, run string) (*checkpoint.Snapshot, error) {
	if err := f.check(run); err != nil {
		return nil, err
	}
	return f.writer.Take(store, owner)
}

// Save begins to write a snapshot, on rank 0. The error is that of the previous one.
func (f *Folder) Save(s *checkpoint.Snapshot) error { return f.writer.Save(s) }

// realPath returns the folder's canonical absolute path.
func (f *Folder) realPath() string {
	path := f.Path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path
}

// ended has the names of the training runs that have ended in this program, by their folders.
// Another training run in the same folder would find the folder's training finished and take its
// weights: the second fold of a cross-validation would get the weights of the first.
var ended sync.Map

// Forget forgets the training runs of this program, for tests.
func Forget() { ended.Clear() }

// Claim returns an error if another training run of this program has ended in the folder.
func (f *Folder) Claim() error {
	if f == nil {
		return nil
	}
	if name, used := ended.Load(f.realPath()); used {
		return fmt.Errorf("its checkpoint folder, %s, belongs to %q, which this program has already finished: give each its own folder (checkpoint.dir); to continue that one, set checkpoint.resume to \"must\"", f.Path, name)
	}
	return nil
}

// End records that the training run with a name has ended.
func (f *Folder) End(name string) {
	if f != nil {
		ended.Store(f.realPath(), name)
	}
}
