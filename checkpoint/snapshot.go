package checkpoint

import (
	"encoding/json"
	"fmt"
	"time"

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

// Snapshot is the state of a training at one moment, in host memory.
type Snapshot struct {
	// Step is the number of updates of the weights so far.
	Step int64
	// Tensors has the values of all variables, by path ("/dense/weights"). They belong to the
	// snapshot, so the training can't change them. A number replaces the random part in the paths
	// of GoMLX's metrics, so that another process finds them.
	Tensors map[string]*tensors.Tensor
	// Weights says which of Tensors are the model, that is, what one needs to use it. The others
	// are needed only to resume the training.
	Weights map[string]bool
	// Trainable says which of Weights an optimizer changes. It is empty in a snapshot that was
	// read.
	Trainable map[string]bool
	// Ranks is the state that each rank has of its own, such as its random stream. It may be empty.
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
	// Versions are the versions of Go and of the libraries that wrote the checkpoint. Save fills in
	// what is missing.
	Versions map[string]string
	// Time is when the checkpoint was written, and Path its folder. Both are empty in a snapshot
	// that wasn't read.
	Time time.Time
	Path string
}

// Take copies all variables to host memory: those of the store, and those that a Restore has left
// for graphs to create. The training must stand still until Take returns. The step is that of
// GoMLX's optimizers.
//
// A weight without a value is an error, because the snapshot would have less than the model.
//
// Most of Take's time is spent on getting new memory. Writer.Take avoids that: it uses the memory
// of a snapshot that has been written.
func Take(store *model.Store) (*Snapshot, error) { return take(store, nil) }

// take copies into the tensors of a snapshot that nobody uses any more, where they fit.
func take(store *model.Store, spare map[string]*tensors.Tensor) (*Snapshot, error) {
	s := &Snapshot{
		Tensors: map[string]*tensors.Tensor{}, Weights: map[string]bool{}, Trainable: map[string]bool{},
		Progress: map[string]json.RawMessage{}, Metrics: Metrics{}, WorldSize: 1,
	}
	var names renamer
	isWeight := weights(store)
	for v := range store.IterVariables() {
		name := names.stable(v.Path())
		if !v.HasValue() {
			if isWeight(v) {
				return nil, fmt.Errorf("checkpoint: the variable %s, %s, has no value yet: a snapshot would miss a part of the model", v.Path(), v.Shape())
			}
			continue
		}
		value, err := hostCopy(v, spare[name])
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
		if err := l.addPending(s); err != nil {
			return nil, err
		}
	}
	if step, ok := s.Tensors[model.JoinPath(model.RootScopePath, optimizer.GlobalStepVariableName)]; ok && step.DType() == dtypes.Int64 && step.IsScalar() {
		s.Step = tensors.ToScalar[int64](step)
	}
	return s, nil
}

// hostCopy copies a variable's value, into the memory of another tensor if that has the same shape.
func hostCopy(v *model.Variable, clone *tensors.Tensor) (*tensors.Tensor, error) {
	value, err := wholeValue(v)
	if err != nil {
		return nil, err
	}
	if clone == nil || !clone.Shape().Equal(value.Shape()) {
		clone = tensors.FromShape(value.Shape())
	}
	if value.Shape().IsZeroSize() {
		return clone, nil
	}
	return clone, clone.CopyFrom(value)
}

// wholeValue is a variable's value, and for one that is replicated over devices that of the first:
// to put the replicas together would be one more copy, and a slow one.
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
