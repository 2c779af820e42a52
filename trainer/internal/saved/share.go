package saved

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/checkpoint"
	"gonbatch/distributed"
)

// Broadcast returns rank 0's value on all ranks. It must survive a round trip through JSON.
func Broadcast[T any](world *distributed.World, value T) (theirs T, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return theirs, err
	}
	if text, err = world.Broadcast(text); err != nil {
		return theirs, err
	}
	return theirs, json.Unmarshal(text, &theirs)
}

// Gather returns the values of all ranks, in order of rank. They must survive a round trip through
// JSON. It is collective.
func Gather[T any](world *distributed.World, value T) ([]T, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	texts, err := world.AllGather(text)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for rank, text := range texts {
		if err := json.Unmarshal(text, &all[rank]); err != nil {
			return nil, fmt.Errorf("what rank %d has sent: %w", rank, err)
		}
	}
	return all, nil
}

// tensorInfo is what the other ranks must know about a tensor before they get it.
type tensorInfo struct {
	Name       string
	DType      dtypes.DType
	Dimensions []int
	Weight     bool
}

// Share sends rank 0's snapshot, its step, its path and its tensors, to the other ranks.
func Share(world *distributed.World, s *checkpoint.Snapshot) (*checkpoint.Snapshot, error) {
	if world.Size() == 1 {
		return s, nil
	}
	var from struct {
		Step    int64
		Path    string
		Tensors []tensorInfo
	}
	if world.IsMain() {
		from.Step, from.Path, from.Tensors = s.Step, s.Path, tensorsOf(s)
	}
	from, err := Broadcast(world, from)
	if err != nil {
		return nil, err
	}
	if !world.IsMain() {
		s = &checkpoint.Snapshot{Step: from.Step, Tensors: map[string]*tensors.Tensor{}, Weights: map[string]bool{}, Path: from.Path}
	}
	for _, info := range from.Tensors {
		if !world.IsMain() {
			s.Tensors[info.Name] = tensors.FromShape(shapes.Make(info.DType, info.Dimensions...))
			if info.Weight {
				s.Weights[info.Name] = true
			}
		}
		if err := shareTensor(world, s.Tensors[info.Name]); err != nil {
			return s, fmt.Errorf("share %s: %s: %w", from.Path, info.Name, err)
		}
	}
	return s, nil
}

// tensorsOf lists a snapshot's tensors by name.
func tensorsOf(s *checkpoint.Snapshot) (all []tensorInfo) {
	for _, name := range slices.Sorted(maps.Keys(s.Tensors)) {
		shape := s.Tensors[name].Shape()
		all = append(all, tensorInfo{name, shape.DType, shape.Dimensions, s.Weights[name]})
	}
	return all
}

func shareTensor(world *distributed.World, tensor *tensors.Tensor) error {
	if tensor.Shape().IsZeroSize() {
		return nil
	}
	var sendErr error
	err := tensor.MutableBytes(func(data []byte) {
		var got []byte
		got, sendErr = world.Broadcast(data)
		copy(data, got)
	})
	return errors.Join(err, sendErr)
}
