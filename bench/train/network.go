package main

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/models"
)

type modelFn = func(*model.Scope, *graph.Node) *graph.Node

// network returns a model and its optimizer.
func network(name string) (modelFn, optimizer.Interface, error) {
	switch name {
	case "cnn":
		return models.MNIST, optimizer.Adam().LearningRate(1e-3).Done(), nil
	case "dense": // No optimizer state: only the weights are saved.
		return dense, optimizer.StochasticGradientDescent().WithLearningRate(1e-4).WithDecay(false).Done(), nil
	case "linear": // So small that the loop's own work shows.
		return linear, optimizer.Adam().LearningRate(1e-3).Done(), nil
	}
	return nil, nil, fmt.Errorf("-model %s: want cnn, dense or linear", name)
}

func linear(scope *model.Scope, x *graph.Node) *graph.Node {
	return layers.Dense(scope.In("logits"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, 10)
}

// The layers of dense: 80 square ones, 500 MB in total.
const (
	denseLayers = 80
	denseSide   = 1250
)

func dense(scope *model.Scope, x *graph.Node) *graph.Node {
	x = layers.Dense(scope.In("first"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, denseSide)
	for i := range denseLayers {
		x = graph.Add(x, activation.Relu(layers.Dense(scope.In("layer_%d", i), x, false, denseSide)))
		x = graph.MulScalar(x, 0.5)
	}
	return layers.Dense(scope.In("logits"), x, true, 10)
}

// images is a dataset of random images in memory.
type images struct{}

const (
	imageCount  = 10_000
	imagePixels = 28 * 28
)

var pixels = sync.OnceValue(func() []float32 {
	rng := rand.New(rand.NewPCG(1, 2))
	all := make([]float32, imageCount*imagePixels)
	for i := range all {
		all[i] = rng.Float32()
	}
	return all
})

func (images) Name() string { return "random" }
func (images) Len() int     { return imageCount }

func (images) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	flat, numbers := make([]float32, 0, len(indices)*imagePixels), make([]int32, len(indices))
	for i, index := range indices {
		flat = append(flat, pixels()[index*imagePixels:(index+1)*imagePixels]...)
		numbers[i] = int32(index % 10)
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(flat, len(indices), 28, 28, 1)},
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(numbers, len(indices), 1)}, nil
}
