package distributed

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
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
			if err := t.MaterializeOnDevice(w.backend, false, 0); err != nil {
				return train.Batch{}, errors.Join(err, b.Finalize())
			}
			t.FinalizeLocal()
		}
	}
	return b, nil
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
