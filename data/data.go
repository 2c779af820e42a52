// Package data has datasets for training. A dataset returns any of its examples by number, in
// batches of tensors. It has no order and knows nothing about ranks: a sampler asks for the numbers
// that it wants, so one dataset serves training, evaluation and any number of ranks.
//
//	train, test, err := mnist.Load(ctx)
//	inputs, labels, err := train.Batch([]int{0, 7, 42})
//	// inputs[0] is [3, 28, 28, 1] float32, labels[0] is [3, 1] int32
//
// Tensors makes a dataset from tensors in memory. ImageFolder reads images from a folder for each
// class, Split divides a dataset, and Augment changes images at random in each epoch of a training
// run:
//
//	photos, err := data.ImageFolder("photos", data.FolderConfig{Height: 64, Width: 64})
//	parts, err := data.Split(photos, 1, 0.8, 0.2)
//	trainSet := data.Augment(parts[0], 1, data.RandomCrop(4), data.RandomFlip(0.5))
//
// Text has the windows of a text, for language models, and a Vocabulary numbers its characters.
// Packages below it read other files: data/tarset tar files in WebDataset's layout, data/table CSV
// files, data/table/parquet Parquet files, data/packed what was decoded before. A Stream has
// examples without numbers.
//
// The package downloads nothing; packages below it do, such as data/mnist.
package data

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/internal/rundir"
	"gonbatch/internal/userdir"
)

// Dataset is a set of numbered examples.
type Dataset interface {
	// Name returns a short and stable name, such as "mnist-train".
	Name() string
	// Len returns the number of examples, at least 1.
	Len() int
	// Batch returns the examples with these numbers, in this order. A number may occur more than
	// once. Each tensor's first axis is the example. The tensors are new and belong to the caller,
	// which frees them; one may be both an input and a label. An empty list, or a number outside
	// 0..Len()-1, is an error; see CheckNumbers.
	//
	// Batch may be called concurrently, and before the examples are needed: training runs load
	// batches ahead, several at once. An example depends only on its number. Wrap a dataset that
	// can't be called concurrently in Serial.
	Batch(indices []int) (inputs, labels []*tensors.Tensor, err error)
}

// Dir returns the folder to which datasets are downloaded: $GONBATCH_DATA, or gonbatch/data in the
// user's cache. It may not exist yet. getenv is os.Getenv, except in tests.
func Dir(getenv func(string) string) string {
	if dir := getenv(rundir.EnvData); dir != "" {
		return dir
	}
	dir, err := userdir.Cache(getenv, "data")
	if err != nil { // A user without a home: data is public, so a shared folder will do.
		return filepath.Join(os.TempDir(), fmt.Sprintf("gonbatch-%d", os.Getuid()), "data")
	}
	return dir
}

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

// CheckNumbers returns an error if a dataset of n examples can't return a batch of these.
func CheckNumbers(name string, indices []int, n int) error {
	if len(indices) == 0 {
		return fmt.Errorf("%s: a batch of no examples", name)
	}
	for _, i := range indices {
		if i < 0 || i >= n {
			return fmt.Errorf("%s: no example %d; there are 0 to %d", name, i, n-1)
		}
	}
	return nil
}
