package load

import (
	"errors"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// Batch returns examples of a dataset, as ds.Batch does. If the dataset fails or panics, the error
// is an *Error.
func Batch(ds data.Dataset, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	return load(ds.Name(), indices, ds.Batch)
}

// EpochBatch returns examples of a dataset in an epoch of a training, as data.EpochBatch does. If
// the dataset fails or panics, the error is an *Error.
func EpochBatch(ds data.Dataset, epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	return load(ds.Name(), indices, func(indices []int) (inputs, labels []*tensors.Tensor, err error) {
		return data.EpochBatch(ds, epoch, indices)
	})
}

type batchFunc = func(indices []int) (inputs, labels []*tensors.Tensor, err error)

// load calls a dataset. The dataset gets a list of numbers of its own.
func load(name string, indices []int, batch batchFunc) (inputs, labels []*tensors.Tensor, err error) {
	inputs, labels, err = guarded(batch, slices.Clone(indices))
	if err == nil {
		return inputs, labels, nil
	}
	return nil, nil, blame(name, slices.Clone(indices), err, func(index int) error {
		inputs, labels, err := guarded(batch, []int{index})
		Finalize(inputs)
		Finalize(labels)
		return err
	})
}

// guarded makes a panic an error, and a missing tensor.
func guarded(batch batchFunc, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked(value)
		}
	}()
	inputs, labels, err = batch(indices)
	if err == nil && (slices.Contains(inputs, nil) || slices.Contains(labels, nil)) {
		err = errors.New("Batch returned a nil tensor")
	}
	return inputs, labels, err
}

// Finalize frees tensors at once, without waiting for the garbage collector.
func Finalize(all []*tensors.Tensor) {
	for _, t := range all {
		_ = t.FinalizeAll()
	}
}
