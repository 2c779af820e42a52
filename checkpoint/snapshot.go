package checkpoint

import (
	"encoding/json"
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/checkpoint/folder"
)

// Metrics maps names to numbers, which may be infinite or NaN.
type Metrics = folder.Metrics

// Number is a number that may be infinite or NaN.
type Number = folder.Number

// Snapshot is the state of a training run at one moment, in host memory.
type Snapshot struct {
	// Step is the number of updates of the weights so far.
	Step int64
	// Tensors has the values of all variables, by path ("/dense/weights"). They belong to the
	// snapshot, so the training can't change them. A number replaces the random part in the paths
	// of GoMLX's metrics, so that another process can find them.
	Tensors map[string]*tensors.Tensor
	// Weights marks the Tensors that belong to the model: those needed to use it. The others are
	// needed only to resume the training.
	Weights map[string]bool
	// Trainable marks the Weights that an optimizer changes. It is empty in a snapshot that was
	// read from disk.
	Trainable map[string]bool
	// Ranks is each rank's own state, such as its random stream. It may be empty.
	Ranks [][]byte
	// Progress is the state of each component of the training, by the component's name: loop
	// counters, sampler, schedules, callbacks.
	Progress map[string]json.RawMessage
	// Metrics are the metrics by which checkpoints are compared.
	Metrics Metrics
	// WorldSize is the number of ranks.
	WorldSize int
	// CodeHash is the hash of the program's sources, if it is known.
	CodeHash string
	// Path is the checkpoint's folder. It is empty in a snapshot that wasn't read from disk.
	Path string
}

// Take copies all variables to host memory: those of the store, and those that a Restore has left
// for graphs to create. The training must pause until Take returns. The step is that of GoMLX's
// optimizers.
//
// A weight without a value is an error, because the snapshot would be missing a part of the model.
// The owner may be nil.
//
// Take spends most of its time allocating memory. Writer.Take avoids that: it reuses the memory of
// a snapshot that has been written.
func Take(store *model.Store, owner Owner) (*Snapshot, error) { return take(store, owner, nil) }

// View is like Take, but the snapshot has the store's tensors instead of copies. It is for a
// program that writes it and then ends: the snapshot changes with the store.
func View(store *model.Store, owner Owner) (*Snapshot, error) {
	return collect(store, owner, func(_ string, t *tensors.Tensor) (*tensors.Tensor, error) { return t, nil })
}

// take copies into the tensors of a snapshot that is no longer used, if they fit.
func take(store *model.Store, owner Owner, spare map[string]*tensors.Tensor) (*Snapshot, error) {
	return collect(store, owner, func(name string, t *tensors.Tensor) (*tensors.Tensor, error) { return hostCopy(t, spare[name]) })
}

// collect makes a snapshot with what pass returns for each variable's value.
func collect(store *model.Store, owner Owner, pass func(name string, t *tensors.Tensor) (*tensors.Tensor, error)) (*Snapshot, error) {
	s := &Snapshot{
		Tensors: map[string]*tensors.Tensor{}, Weights: map[string]bool{}, Trainable: map[string]bool{},
		Progress: map[string]json.RawMessage{}, Metrics: Metrics{}, WorldSize: 1,
	}
	var names renamer
	isWeight := owner.weights(store)
	for v := range store.IterVariables() {
		if err := misplaced(v); err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
		name := names.stable(v.Path())
		if !v.HasValue() {
			if isWeight(v) {
				return nil, fmt.Errorf("checkpoint: the variable %s, %s, has no value yet, so a snapshot would be incomplete", v.Path(), v.Shape())
			}
			continue
		}
		value, err := wholeValue(v)
		if err == nil {
			value, err = pass(name, value)
		}
		if err != nil {
			return nil, fmt.Errorf("checkpoint: copy the variable %s, %s: %w", v.Path(), v.Shape(), err)
		}
		s.Tensors[name] = value
		if isWeight(v) {
			s.Weights[name] = true
			s.Trainable[name] = v.Trainable
		}
	}
	if l, ok := store.Loader().(*loader); ok {
		if err := l.addPending(s, owner, pass); err != nil {
			return nil, err
		}
	}
	if step, ok := s.Tensors[model.JoinPath(model.RootScopePath, optimizer.GlobalStepVariableName)]; ok && step.DType() == dtypes.Int64 && step.IsScalar() {
		s.Step = tensors.ToScalar[int64](step)
	}
	return s, nil
}

// hostCopy copies a tensor, into the memory of another one if that has the same shape.
func hostCopy(value, clone *tensors.Tensor) (*tensors.Tensor, error) {
	if clone == nil || !clone.Shape().Equal(value.Shape()) {
		clone = tensors.FromShape(value.Shape())
	}
	if value.Shape().IsZeroSize() {
		return clone, nil
	}
	return clone, clone.CopyFrom(value)
}

// wholeValue returns a variable's value. If the variable is replicated over devices, it returns the
// first replica: putting the replicas together would be another, slow copy.
func wholeValue(v *model.Variable) (*tensors.Tensor, error) {
	if v.ShardingSpec() != nil {
		if distributed, err := v.DistributedValue(); err == nil {
			if shards := distributed.Shards(); len(shards) > 0 && shards[0].Shape().Equal(v.Shape()) {
				return shards[0], nil
			}
		}
	}
	return v.Value()
}
