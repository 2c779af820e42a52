package data

import "github.com/gomlx/gomlx/core/tensors"

// Epochs is a Dataset whose examples differ from one epoch of a training run to the next, such as
// the result of Augment. Training runs call EpochBatch. Validations, tests and predictions call
// Batch, which returns the examples unchanged.
type Epochs interface {
	Dataset
	// EpochBatch is like Batch, for an epoch of a training run, counted from 0. An example depends
	// only on its number and the epoch, so that it is the same on any rank and in a training run
	// that resumes.
	EpochBatch(epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error)
}

// EpochBatch returns examples of ds as a training run sees them in an epoch: from the dataset's own
// EpochBatch, or from Batch if the examples are the same in each epoch. A dataset that wraps
// another one calls it to forward the epoch.
func EpochBatch(ds Dataset, epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	if ds, ok := ds.(Epochs); ok {
		return ds.EpochBatch(epoch, indices)
	}
	return ds.Batch(indices)
}
