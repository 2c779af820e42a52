package distributed

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/internal/plural"
)

// placement puts a batch on the devices of this process. It takes the batch over.
type placement[B batch] func(train.Batch) (B, error)

// onDevice puts a batch on the first device. It has memory of its own there, which the step that
// uses it may take.
func (w *World) onDevice(b train.Batch) (train.Batch, error) {
	for _, all := range [][]*tensors.Tensor{b.Inputs, b.Labels} {
		for _, t := range all {
			if err := w.toDevice(t); err != nil {
				return train.Batch{}, errors.Join(err, b.Finalize())
			}
		}
	}
	return b, nil
}

// toDevice moves a tensor to memory of its own on the first device, so that no other copy remains.
func (w *World) toDevice(t *tensors.Tensor) error {
	if err := t.MaterializeOnDevice(w.backend, false, 0); err != nil {
		return err
	}
	t.FinalizeLocal()
	return nil
}

// leastFreed is how many bytes Settle moves before it frees the memory where they were.
const leastFreed = 32 << 20

// Settle moves the values of a store's variables to the device where programs use them. Values that
// were read from a file are not there yet: the first program that uses them would copy them, and
// then both copies would be in memory. With several devices in a process, programs divide the
// values, and Settle does nothing.
func (w *World) Settle(store *model.Store) error {
	if w.Devices() > 1 {
		return nil
	}
	left := leastFreed
	for v := range store.IterVariables() {
		if !v.HasValue() {
			continue
		}
		value, err := v.Value()
		if err == nil && !value.HasLocal() {
			continue
		}
		if err == nil {
			err = w.toDevice(value)
		}
		if err != nil {
			return fmt.Errorf("distributed: move the variable %s to the device: %w", v.Path(), err)
		}
		if left -= int(value.ByteSize()); left <= 0 {
			debug.FreeOSMemory()
			left = leastFreed
		}
	}
	return nil
}

// sharded divides a batch among the rows of a mesh.
func (w *World) sharded(m *mesh) placement[train.DistributedBatch] {
	return func(b train.Batch) (train.DistributedBatch, error) { return w.spread(b, m.sharded) }
}

// replicated gives each device the whole batch.
func (w *World) replicated(m *mesh) placement[train.DistributedBatch] {
	return func(b train.Batch) (train.DistributedBatch, error) { return w.spread(b, m.whole) }
}

func (w *World) spread(b train.Batch, spec *distributed.ShardingSpec) (train.DistributedBatch, error) {
	w.busy.Store(true)
	inputs, inputErr := w.spreadAll(b.Inputs, spec)
	labels, labelErr := w.spreadAll(b.Labels, spec)
	all := train.DistributedBatch{Inputs: inputs, Labels: labels, Spec: b.Spec}
	if err := errors.Join(inputErr, labelErr, b.Finalize()); err != nil {
		return train.DistributedBatch{}, errors.Join(err, all.Finalize())
	}
	return all, nil
}

// spreadAll returns those that it has spread, even if there is an error.
func (w *World) spreadAll(from []*tensors.Tensor, spec *distributed.ShardingSpec) (all []*dtensor.Tensor, err error) {
	for _, t := range from {
		shards, err := w.shards(t, spec)
		if err != nil {
			return all, err
		}
		whole, err := dtensor.NewTensor(spec, shards)
		if err != nil {
			return all, err
		}
		all = append(all, whole)
	}
	return all, nil
}

// shards returns the part of a tensor for each device: equal parts of the first axis, or the whole.
func (w *World) shards(t *tensors.Tensor, spec *distributed.ShardingSpec) (shards []*tensors.Tensor, err error) {
	shape, parts := t.Shape().Clone(), spec.NumDevicesShardingAxis(0)
	if !spec.IsReplicated() {
		if shape.Rank() == 0 || shape.Dimensions[0]%parts != 0 {
			return nil, fmt.Errorf("a tensor of shape %s can't be divided among %s: its first axis must be the examples", shape, plural.Of(w.devices, "device"))
		}
		shape.Dimensions[0] /= parts
	}
	readErr := t.ConstFlatData(func(flat any) {
		values := reflect.ValueOf(flat)
		size := values.Len() / parts
		for device := range w.devices {
			part := device * parts / w.devices
			var buffer compute.Buffer
			if buffer, err = w.backend.BufferFromFlatData(compute.DeviceNum(device), values.Slice(part*size, (part+1)*size).Interface(), shape); err != nil {
				return
			}
			var shard *tensors.Tensor
			if shard, err = tensors.FromBuffer(buffer); err != nil {
				return
			}
			shards = append(shards, shard)
		}
	})
	return shards, errors.Join(readErr, err)
}
