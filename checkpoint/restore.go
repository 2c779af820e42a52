package checkpoint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// Restore gives the store's variables the snapshot's values: immediately to existing variables, and
// through the store's Loader to those that graphs create later. If an existing variable has another
// type or shape, or isn't in the snapshot, nothing changes and the error is a *MismatchError.
// Variables of metrics may be missing.
//
// The variables named in withheld keep the values with which graphs create them. Until they exist,
// snapshots of the store have the restored values.
//
// The store gets copies, so the snapshot may be restored again. The snapshot stays in memory until
// all its variables have been used.
func (s *Snapshot) Restore(store *model.Store, withheld ...string) error {
	loader := newLoader(store)
	loader.withheld = withheld
	return s.restoreBy(loader, store)
}

// Give is like Restore, but the store gets the snapshot's tensors instead of copies: it takes no
// time and no memory, and the snapshot must not be used afterwards.
func (s *Snapshot) Give(store *model.Store) error {
	loader := newLoader(store)
	for name := range s.Tensors {
		loader.given[name] = true
	}
	return s.restoreBy(loader, store)
}

func (s *Snapshot) restoreBy(loader *loader, store *model.Store) error {
	loader.weights = s.Weights
	mismatch := &MismatchError{Checkpoint: s.name()}
	for v := range store.IterVariables() {
		s.compare(v, loader.names.stable(v.Path()), mismatch)
	}
	if err := mismatch.orNil(); err != nil {
		return err
	}
	if err := s.restore(store, loader); err != nil {
		return err
	}
	if err := s.restoreRNG(store, loader); err != nil {
		return err
	}
	store.SetLoader(loader)
	return nil
}

// RestoreWeights gives the model's variables at the wanted paths the snapshot's values: immediately
// to existing variables, and through the store's Loader to those that graphs create later. All
// other variables stay as they are. If an existing variable has another type or shape, nothing
// changes and the error is a *MismatchError.
//
// Values that earlier calls have left for graphs to load stay, except at these paths.
func (s *Snapshot) RestoreWeights(store *model.Store, wanted func(path string) bool) error {
	part := *s
	part.Tensors = s.part(true)
	maps.DeleteFunc(part.Tensors, func(path string, _ *tensors.Tensor) bool { return !wanted(path) })
	mismatch := &MismatchError{Checkpoint: s.name()}
	for v := range store.IterVariables() {
		if part.Tensors[v.Path()] != nil {
			part.compare(v, v.Path(), mismatch)
		}
	}
	if err := mismatch.orNil(); err != nil {
		return err
	}
	l := newLoader(store)
	if earlier, ok := store.Loader().(*loader); ok {
		l = earlier.clone()
	}
	for path := range part.Tensors {
		l.weights[path] = true
		delete(l.given, path)
	}
	if err := part.restore(store, l); err != nil {
		return err
	}
	store.SetLoader(l)
	return nil
}

// restore gives existing variables the snapshot's values, and passes the other values to the
// loader.
func (s *Snapshot) restore(store *model.Store, l *loader) error {
	maps.Copy(l.tensors, s.Tensors)
	for v := range store.IterVariables() {
		name := l.names.stable(v.Path())
		value, ok := s.Tensors[name]
		if !ok {
			continue
		}
		if value, err := l.pass(name, value); err != nil {
			return fmt.Errorf("checkpoint: copy the variable %s: %w", v.Path(), err)
		} else if err := v.SetValue(value); err != nil {
			return fmt.Errorf("checkpoint: set the variable %s: %w", v.Path(), err)
		}
		delete(l.tensors, name)
	}
	return nil
}

// Create immediately creates the variables that Restore has left for graphs to create, except those
// of metrics. It is for a store whose training run has ended, for which no further graph may be
// built.
func (s *Snapshot) Create(store *model.Store) error {
	if l, ok := store.Loader().(*loader); ok {
		l.withheld = nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Tensors)) {
		if isOptional(name) {
			continue
		}
		v := store.GetVariable(name) // GoMLX takes it from the Loader, as a trainable variable.
		if v == nil {
			return fmt.Errorf("checkpoint: create %s: Restore comes first", name)
		}
		v.Trainable = s.Weights[name]
	}
	return nil
}

// Check compares the store's variables with the snapshot's, after the graphs are built. A variable
// that only one of them has means another model or optimizer, and the error is a *MismatchError.
// Check ignores variables of metrics, and those of the store in the scopes of added, such as
// "/optimizers/average".
func (s *Snapshot) Check(store *model.Store, added ...string) error {
	needed := slices.DeleteFunc(slices.Collect(maps.Keys(s.Tensors)), isOptional)
	return s.match(store, func(v *model.Variable) bool { return !inScopes(v.Path(), added) }, needed)
}

// inScopes reports whether a variable is in one of the scopes.
func inScopes(variable string, scopes []string) bool {
	return slices.ContainsFunc(scopes, func(scope string) bool { return strings.HasPrefix(variable, scope+model.ScopeSeparator) })
}

// CheckModel is like Check, for a store whose graphs use the model without training it: variables
// needed only for training may be missing.
func (s *Snapshot) CheckModel(store *model.Store) error {
	return s.match(store, Owner(nil).weights(store), slices.Collect(maps.Keys(s.Weights)))
}

// CheckWeights is like CheckModel, for the weights at the wanted paths.
func (s *Snapshot) CheckWeights(store *model.Store, owner Owner, wanted func(path string) bool) error {
	isWeight := owner.weights(store)
	needed := slices.DeleteFunc(slices.Collect(maps.Keys(s.Weights)), func(path string) bool { return !wanted(path) })
	return s.match(store, func(v *model.Variable) bool { return wanted(v.Path()) && isWeight(v) }, needed)
}

// CheckUsed is like CheckModel, for graphs that may be only a part of the model.
func (s *Snapshot) CheckUsed(store *model.Store) error {
	return s.match(store, Owner(nil).weights(store), nil)
}

// match compares the store's variables that count, which must include the needed ones.
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

// compare records how a variable of the store differs from the one in the snapshot.
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

// restoreRNG creates the random stream's variable at once: from a Loader, GoMLX would take it as a
// trainable variable.
func (s *Snapshot) restoreRNG(store *model.Store, l *loader) error {
	path := model.JoinPath(model.RootScopePath, model.RNGStateVariableName)
	value, ok := l.tensors[path]
	if !ok {
		return nil
	}
	delete(l.tensors, path)
	value, err := l.pass(path, value)
	if err != nil {
		return fmt.Errorf("checkpoint: copy %s: %w", path, err)
	}
	v, err := store.CreateVariable(path, value)
	if err != nil {
		return fmt.Errorf("checkpoint: create %s: %w", path, err)
	}
	v.Trainable = false
	return nil
}

// loader gives variables their values when graphs create them.
type loader struct {
	names   renamer
	tensors map[string]*tensors.Tensor
	weights map[string]bool
	// withheld are the names of values that graphs don't get.
	withheld []string
	// given are the names of tensors that the store gets themselves; of others it gets copies.
	given  map[string]bool
	before model.Loader // The store's own loader, which is asked second.
}

var _ model.Loader = (*loader)(nil)

// newLoader returns a loader in front of the store's own. It replaces the loader of an earlier
// Restore.
func newLoader(store *model.Store) *loader {
	l := &loader{tensors: map[string]*tensors.Tensor{}, weights: map[string]bool{}, given: map[string]bool{}, before: store.Loader()}
	if earlier, ok := l.before.(*loader); ok {
		l.before = earlier.before
	}
	return l
}

// clone returns a loader that can be changed without changing l.
func (l *loader) clone() *loader {
	other := *l
	other.tensors, other.weights, other.given = maps.Clone(l.tensors), maps.Clone(l.weights), maps.Clone(l.given)
	other.names.numbers, other.names.counts = maps.Clone(l.names.numbers), maps.Clone(l.names.counts)
	return &other
}

// pass returns what the store gets for a tensor.
func (l *loader) pass(name string, t *tensors.Tensor) (*tensors.Tensor, error) {
	if l.given[name] {
		return t, nil
	}
	return t.LocalClone()
}

// LoadVariable returns a value once.
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
	value, err := l.pass(name, value)
	if err != nil {
		panic(fmt.Errorf("checkpoint: copy the variable %s: %w", path, err)) // A Loader can't return an error, but graphs are built under a recover.
	}
	delete(l.tensors, name)
	return value, true
}

// addPending adds the variables to a snapshot that no graph has created yet. It leaves out those of
// metrics, because a program need not have them. pass returns what the snapshot gets for a tensor.
func (l *loader) addPending(s *Snapshot, owner Owner, pass func(name string, t *tensors.Tensor) (*tensors.Tensor, error)) error {
	for name, value := range l.tensors {
		if _, exists := s.Tensors[name]; exists || isOptional(name) {
			continue
		}
		value, err := pass(name, value)
		if err != nil {
			return fmt.Errorf("checkpoint: copy the variable %s: %w", name, err)
		}
		s.Tensors[name] = value
		if weight, known := owner.knows(name); weight || !known && l.weights[name] {
			s.Weights[name] = true
		}
	}
	return nil
}

// DeleteVariable drops a value.
func (l *loader) DeleteVariable(store *model.Store, path string) error {
	delete(l.tensors, l.names.stable(path))
	if l.before != nil {
		return l.before.DeleteVariable(store, path)
	}
	return nil
}
