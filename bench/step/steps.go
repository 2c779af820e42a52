package main

import (
	"iter"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/distributed"
)

// steps takes n training steps with the same inputs, and yields their metrics. On several devices,
// a loader divides the inputs among them.
func steps(world *distributed.World, trainer *train.Trainer, in inputs, n int) iter.Seq2[[]*tensors.Tensor, error] {
	if world.Devices() == 1 {
		return func(yield func([]*tensors.Tensor, error) bool) {
			for range n {
				if !yield(trainer.TrainStep(in.batch())) {
					return
				}
			}
		}
	}
	size := in.size[0] * world.Size()
	loader, err := world.Loader(repeated{in, n * size}, distributed.LoaderOptions{BatchSize: size})
	if err != nil {
		return func(yield func([]*tensors.Tensor, error) bool) { yield(nil, err) }
	}
	return world.TrainSteps(trainer, loader, nil)
}

// repeated is a dataset in which each rank's part of a batch is the same inputs.
type repeated struct {
	inputs inputs
	n      int
}

func (r repeated) Name() string { return "repeated" }
func (r repeated) Len() int     { return r.n }

func (r repeated) Batch([]int) (values, labels []*tensors.Tensor, err error) {
	b := r.inputs.batch()
	return b.Inputs, b.Labels, nil
}
