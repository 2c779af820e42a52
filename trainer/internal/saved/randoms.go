package saved

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/distributed"
)

// Randoms is this rank's stream of random numbers, for dropout and noise. Each rank has its own.
type Randoms struct {
	Store   *model.Store
	pending []byte // To restore when the model is built.
	foreign bool   // The checkpoint is of a world of another size: until the model is built, the variable has rank 0's state.
}

func (r *Randoms) variable() *model.Variable {
	return r.Store.GetVariable(model.JoinPath("/", model.RNGStateVariableName))
}

// Seed creates the stream's variable, unless the store has it.
func (r *Randoms) Seed(seed uint64) error {
	if r.variable() != nil {
		return nil
	}
	state, err := graph.RNGStateFromSeed(int64(seed))
	if err != nil {
		return err
	}
	v, err := r.Store.CreateVariable(model.JoinPath("/", model.RNGStateVariableName), state)
	if err != nil {
		return err
	}
	v.SetTrainable(false)
	return nil
}

// Resume continues the stream that this rank had when a checkpoint was written. states has one
// entry for each rank. It returns false if the number of ranks was different then.
func (r *Randoms) Resume(states [][]byte, ranks int, world *distributed.World) bool {
	r.foreign = ranks != world.Size() || world.Rank() >= len(states)
	if !r.foreign {
		r.pending = states[world.Rank()]
	}
	return !r.foreign
}

// State returns the stream's state. It is empty if the model draws no random numbers.
func (r *Randoms) State() ([]byte, error) {
	if len(r.pending) > 0 || r.foreign {
		return r.pending, nil
	}
	v := r.variable()
	if v == nil || !v.HasValue() {
		return nil, nil
	}
	value, err := v.Value()
	if err != nil {
		return nil, fmt.Errorf("the random state: %w", err)
	}
	var state []byte
	err = value.ConstBytes(func(data []byte) { state = append(state, data...) })
	return state, err
}

// Restore sets the pending state, once there is a model with random numbers.
func (r *Randoms) Restore() error {
	r.foreign = false
	set, err := r.Set()
	if set {
		r.pending = nil
	}
	return err
}

// Set gives the variable the pending state, and reports whether there are both. The state stays
// pending, because a model that is built later gives the variable another value first.
func (r *Randoms) Set() (bool, error) {
	v := r.variable()
	if len(r.pending) == 0 || v == nil {
		return false, nil
	}
	value := tensors.FromShape(graph.RNGStateShape)
	size := 0
	err := value.MutableBytes(func(data []byte) { size = len(data); copy(data, r.pending) })
	if err == nil && size != len(r.pending) {
		err = fmt.Errorf("it has %d bytes, want %d for %s", len(r.pending), size, graph.RNGStateShape)
	}
	if err != nil {
		return false, fmt.Errorf("trainer: the random state of the checkpoint: %w", err)
	}
	return true, v.SetValue(value)
}
