// Package initial has the weights with which a model begins: those of another training run, or of
// another library's file.
package initial

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/checkpoint"
	"gonbatch/distributed"
	"gonbatch/trainer/internal/saved"
	"gonbatch/trainer/internal/step"
)

// Weights initialize the variables of a model under some scopes, or all of them.
type Weights struct {
	Name   string // Of the option, for errors.
	Scopes []string
	// Read returns the weights, the same on all ranks.
	Read func(*distributed.World) (*checkpoint.Snapshot, error)

	was      map[string]string    // What each variable was in a file of another library; nil for our own.
	snapshot *checkpoint.Snapshot // Until the model is built and compared with it.
}

// All are weights in the order in which they are put into the store.
type All []*Weights

// From returns the weights of a checkpoint, of the newest in a folder, or of a .safetensors file.
func From(name, path string, scopes []string) *Weights {
	return &Weights{Name: name, Scopes: scopes, Read: func(world *distributed.World) (s *checkpoint.Snapshot, err error) {
		if err := world.OnMain(func() (err error) { s, err = readWeights(path); return err }); err != nil {
			return nil, err
		}
		return saved.Share(world, s)
	}}
}

// FromForeign returns the weights of another library's file.
func FromForeign(name, path string, scopes []string, become Targets) *Weights {
	w := &Weights{Name: name, Scopes: scopes}
	w.Read = func(world *distributed.World) (s *checkpoint.Snapshot, err error) {
		if err := world.OnMain(func() (err error) { s, w.was, err = readForeign(path, become); return err }); err != nil {
			return nil, err
		}
		if w.was, err = saved.Broadcast(world, w.was); err != nil {
			return nil, err
		}
		return saved.Share(world, s)
	}
	return w
}

// readWeights reads the weights of a checkpoint, of the newest one in a folder, or of a file.
func readWeights(path string) (*checkpoint.Snapshot, error) {
	if strings.HasSuffix(path, ".safetensors") {
		return readWeightsFile(path)
	}
	if _, err := os.Stat(filepath.Join(path, checkpoint.WeightsFile)); err != nil {
		all, err := checkpoint.List(path)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("%s is neither a checkpoint, nor a folder of checkpoints, nor a .safetensors file", path)
		}
		path = all[0].Path
	}
	s, err := checkpoint.Read(path)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(s.Tensors, func(path string, _ *tensors.Tensor) bool { return !s.Weights[path] })
	return s, nil
}

func readWeightsFile(path string) (s *checkpoint.Snapshot, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	s = &checkpoint.Snapshot{Path: path, Weights: map[string]bool{}}
	if s.Tensors, _, err = checkpoint.ReadTensors(f, info.Size()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for name := range s.Tensors {
		s.Weights[name] = true
	}
	return s, nil
}

// Begin puts the weights into the store, before anything is loaded into it.
func (all All) Begin(world *distributed.World, store *model.Store) error {
	for _, w := range all {
		s, err := w.Read(world)
		if err == nil {
			err = w.check(s)
		}
		if err == nil {
			err = w.explain(s.RestoreWeights(store, w.wants), store)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.Name, err)
		}
		w.snapshot = s
	}
	return nil
}

// check returns an error if a scope has no weights.
func (w *Weights) check(s *checkpoint.Snapshot) error {
	all := slices.Sorted(maps.Keys(s.Weights))
	for _, scope := range w.Scopes {
		if err := step.CheckScope(scope); err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(path string) bool { return step.Under(path, scope) }) {
			return fmt.Errorf("there are no weights under %q, only under %q", scope, step.Near(scope, all))
		}
	}
	if len(all) == 0 {
		return errors.New("there are no weights")
	}
	return nil
}

// wants reports whether a weight must be initialized.
func (w *Weights) wants(path string) bool {
	return len(w.Scopes) == 0 || slices.ContainsFunc(w.Scopes, func(scope string) bool { return step.Under(path, scope) })
}

// Compare compares the model, once built, with its initial weights.
func (all All) Compare(store *model.Store, owner checkpoint.Owner) error {
	for _, w := range all {
		if w.snapshot == nil {
			continue
		}
		if err := w.snapshot.CheckWeights(store, owner, w.wants); err != nil {
			return fmt.Errorf("%s: %w", w.Name, w.explain(err, store))
		}
	}
	return nil
}
