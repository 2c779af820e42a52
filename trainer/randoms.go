package trainer

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// randoms is this rank's stream of random numbers: each rank has one of its own, for dropout and
// noise.
type randoms struct {
	store   *model.Store
	pending []byte // To be restored when the model is built.
	foreign bool   // Until then the variable has rank 0's state, of a world of another size.
}

func (r *randoms) variable() *model.Variable {
	return r.store.GetVariable(model.JoinPath("/", model.RNGStateVariableName))
}

// seed makes the stream's variable, unless the store has it.
func (r *randoms) seed(seed uint64) error {
	if r.variable() != nil {
		return nil
	}
	state, err := graph.RNGStateFromSeed(int64(seed))
	if err != nil {
		return err
	}
	v, err := r.store.CreateVariable(model.JoinPath("/", model.RNGStateVariableName), state)
	if err != nil {
		return err
	}
	v.SetTrainable(false)
	return nil
}

// state is empty where the model draws no random numbers.
func (r *randoms) state() ([]byte, error) {
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

// restore sets the state that is pending, once there is a model to have it.
func (r *randoms) restore() error {
	r.foreign = false
	v := r.variable()
	if len(r.pending) == 0 || v == nil {
		return nil
	}
	value := tensors.FromShape(graph.RNGStateShape)
	size := 0
	err := value.MutableBytes(func(data []byte) { size = len(data); copy(data, r.pending) })
	if err == nil && size != len(r.pending) {
		err = fmt.Errorf("it has %d bytes, want %d for %s", len(r.pending), size, graph.RNGStateShape)
	}
	if err != nil {
		return fmt.Errorf("trainer: the random state of the checkpoint: %w", err)
	}
	r.pending = nil
	return v.SetValue(value)
}
