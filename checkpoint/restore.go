package checkpoint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// Restore gives the store's variables the snapshot's values: immediately to those that exist, and
// through the store's Loader to those that graphs create later. If an existing variable has another
// type or shape, or isn't in the snapshot, nothing changes and the error is a *MismatchError.
// Variables of metrics may be missing.
//
// The variables named in withheld keep the values with which graphs create them. Until they exist,
// snapshots of the store have the restored values.
//
// The store gets copies, so the snapshot may be restored again. It stays in memory until all its
// variables have been used.
func (s *Snapshot) Restore(store *model.Store, withheld ...string) error {
	loader := newLoader(store)
	loader.weights, loader.withheld = s.Weights, withheld
	existing := map[*model.Variable]*tensors.Tensor{}
	mismatch := &MismatchError{Checkpoint: s.name()}
	for v := range store.IterVariables() {
		name := loader.names.stable(v.Path())
		if value, ok := s.Tensors[name]; ok {
			existing[v] = value
		}
		s.compare(v, name, mismatch)
	}
	if err := mismatch.orNil(); err != nil {
		return err
	}
	for name, value := range s.Tensors {
		loader.tensors[name] = value
	}
	for v, value := range existing {
		if err := setValue(v, value); err != nil {
			return fmt.Errorf("checkpoint: set the variable %s: %w", v.Path(), err)
		}
		delete(loader.tensors, loader.names.stable(v.Path()))
	}
	if err := s.restoreRNG(store, loader); err != nil {
		return err
	}
	store.SetLoader(loader)
	return nil
}

// Create immediately adds the variables that Restore has left for graphs to create, except those of
// metrics. It is for a store whose training has ended, for which no graph may be built any more.
func (s *Snapshot) Create(store *model.Store) error {
	if l, ok := store.Loader().(*loader); ok {
		l.withheld = nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Tensors)) {
		if isOptional(name) {
			continue
		}
		v := store.GetVariable(name) // GoMLX takes it from the Loader, as a trainable one.
		if v == nil {
			return fmt.Errorf("checkpoint: create %s: Restore comes first", name)
		}
		v.Trainable = s.Weights[name]
	}
	return nil
}

// Check compares the store's variables with the snapshot's, after the graphs are built. A variable
// that only one of them has means another model or optimizer, and is a *MismatchError. Variables of
// metrics are ignored.
func (s *Snapshot) Check(store *model.Store) error {
	needed := slices.DeleteFunc(slices.Collect(maps.Keys(s.Tensors)), isOptional)
	return s.match(store, func(*model.Variable) bool { return true }, needed)
}

// CheckModel is like Check, for a store whose graphs use the model without training it: variables
// of the training may be missing.
func (s *Snapshot) CheckModel(store *model.Store) error {
	return s.match(store, weights(store), slices.Collect(maps.Keys(s.Weights)))
}

// CheckUsed is like CheckModel, for graphs that may be only a part of the model.
func (s *Snapshot) CheckUsed(store *model.Store) error { return s.match(store, weights(store), nil) }

// match compares the variables of the store that count, which must have those that are needed.
func (s *Snapshot) match(store *model.Store, counts func(*model.Variable) bool, needed []string) error {
	var names renamer
	mismatch := &MismatchError{Checkpoint: s.name()}
	has := map[string]bool{}
	for v := range store.IterVariables() {
		name := names.stable(v.Path())
		has[name] = true
		if counts(v) {
			s.compare(v, name, mismatch)
		}
	}
	for _, name := range needed {
		if !has[name] {
			mismatch.Unused = append(mismatch.Unused, name)
		}
	}
	return mismatch.orNil()
}

// compare notes how a variable of the store differs from the one in the snapshot.
func (s *Snapshot) compare(v *model.Variable, name string, mismatch *MismatchError) {
	value, ok := s.Tensors[name]
	switch {
	case !ok && !isOptional(name):
		mismatch.Missing = append(mismatch.Missing, name)
	case ok && !value.Shape().Equal(v.Shape()):
		mismatch.Different = append(mismatch.Different, Difference{Path: name, Checkpoint: value.Shape().String(), Model: v.Shape().String()})
	}
}

func (s *Snapshot) name() string {
	if s.Path != "" {
		return s.Path
	}
	return fmt.Sprintf("the snapshot of step %d", s.Step)
}

// restoreRNG creates the random stream's variable at once: GoMLX takes it from a Loader as a
// trainable one.
func (s *Snapshot) restoreRNG(store *model.Store, l *loader) error {
	path := model.JoinPath(model.RootScopePath, model.RNGStateVariableName)
	value, ok := l.tensors[path]
	if !ok {
		return nil
	}
	delete(l.tensors, path)
	clone, err := value.LocalClone()
	if err != nil {
		return fmt.Errorf("checkpoint: copy %s: %w", path, err)
	}
	v, err := store.CreateVariable(path, clone)
	if err != nil {
		return fmt.Errorf("checkpoint: create %s: %w", path, err)
	}
	v.Trainable = false
	return nil
}

func setValue(v *model.Variable, value *tensors.Tensor) error {
	clone, err := value.LocalClone()
	if err != nil {
		return err
	}
	return v.SetValue(clone)
}

// loader gives variables their values when graphs create them.
type loader struct {
	names   renamer
	tensors map[string]*tensors.Tensor
	weights map[string]bool
	// withheld are names whose values graphs don't get.
	withheld []string
	before   model.Loader // The one that the store had; it comes second.
}

var _ model.Loader = (*loader)(nil)

// newLoader makes one that stands before the store's own, and in the place of one of an earlier
// Restore.
func newLoader(store *model.Store) *loader {
	l := &loader{tensors: map[string]*tensors.Tensor{}, before: store.Loader()}
	if earlier, ok := l.before.(*loader); ok {
		l.before = earlier.before
	}
	return l
}

// LoadVariable gives a value out once.
func (l *loader) LoadVariable(store *model.Store, path string) (*tensors.Tensor, bool) {
	name := l.names.stable(path)
	value, ok := l.tensors[name]
	if ok && slices.Contains(l.withheld, name) {
		return nil, false
	}
	if !ok {
		if l.before != nil {
			return l.before.LoadVariable(store, path)
		}
		return nil, false
	}
	clone, err := value.LocalClone()
	if err != nil {
		panic(fmt.Errorf("checkpoint: copy the variable %s: %w", path, err)) // A Loader can't return it; graphs are built under a recover.
	}
	delete(l.tensors, name)
	return clone, true
}

// addPending adds to a snapshot the variables that no graph has created yet. Those of metrics are
// left out: a program need not have them.
func (l *loader) addPending(s *Snapshot) error {
	for name, value := range l.tensors {
		if _, exists := s.Tensors[name]; exists || isOptional(name) {
			continue
		}
		clone, err := value.LocalClone()
		if err != nil {
			return fmt.Errorf("checkpoint: copy the variable %s: %w", name, err)
		}
		s.Tensors[name] = clone
		if l.weights[name] {
			s.Weights[name] = true
		}
	}
	return nil
}

// DeleteVariable forgets a value.
func (l *loader) DeleteVariable(store *model.Store, path string) error {
	delete(l.tensors, l.names.stable(path))
	if l.before != nil {
		return l.before.DeleteVariable(store, path)
	}
	return nil
}
