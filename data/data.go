// Package data has datasets for training: any example by its number, in batches of tensors.
//
// A dataset has no order and no rank of its own. Who shuffles and shards - a sampler - asks for the
// numbers that it wants, so one dataset serves training, evaluation and any number of ranks.
//
//	train, test, err := mnist.Load(ctx)
//	inputs, labels, err := train.Batch([]int{0, 7, 42})
//	// inputs[0] is [3, 28, 28, 1] float32, labels[0] is [3, 1] int32
//
// The package downloads nothing: that is the business of the packages below it, such as data/mnist.
package data

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/internal/fetch"
	"gonbatch/internal/rundir"
)

// Dataset is a set of numbered examples.
type Dataset interface {
	// Name is short and stable, such as "mnist-train".
	Name() string
	// Len is the number of examples, at least 1.
	Len() int
	// Batch returns the examples of these numbers, in this order; a number may come more than once.
	// Each tensor's first axis is the example. The tensors are new and belong to the caller. No
	// number, or one outside 0..Len()-1, is an error. Batch may be called at once from several
	// goroutines.
	Batch(indices []int) (inputs, labels []*tensors.Tensor, err error)
}

// Dir is the folder that datasets are downloaded to: $GONBATCH_DATA, else gonbatch/data in the
// user's cache. It may not exist yet. getenv is os.Getenv, save in tests.
func Dir(getenv func(string) string) string {
	if dir := getenv(rundir.EnvData); dir != "" {
		return dir
	}
	dir, err := fetch.CacheDir(getenv, "data")
	if err != nil { // A user without a home: data is public, so a shared folder will do.
		return filepath.Join(os.TempDir(), fmt.Sprintf("gonbatch-%d", os.Getuid()), "data")
	}
	return dir
}
