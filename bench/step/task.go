package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/models"
	"gonbatch/trainer"
)

// task is a network with its loss and optimizer, and the inputs it gets.
type task struct {
	network   func(*model.Scope, *graph.Node) *graph.Node
	loss      loss.LossFn
	optimizer optimizer.Interface
	inputs    func(n int, rng *rand.Rand) inputs
}

// newTask returns the task with that name; bench/peers/networks.py has the same networks.
func newTask(name string) (task, error) {
	classes := loss.SparseCategoricalCrossEntropyLogits
	switch name {
	case "cnn":
		return task{models.MNIST, classes, optimizer.Adam().LearningRate(1e-3).Done(), images(28, 28, 1)}, nil
	case "resnet18":
		return task{models.ResNet18(10), classes, trainer.SGD{LearningRate: 0.01, Momentum: 0.9}, images(32, 32, 3)}, nil
	case "mlp":
		return task{mlp, classes, optimizer.Adam().LearningRate(1e-4).Done(), images(mlpWidth)}, nil
	case "gpt":
		return task{models.GPT(gpt), models.NextTokenLoss, optimizer.Adam().LearningRate(1e-4).Done(), texts}, nil
	}
	return task{}, fmt.Errorf("-model %s: want cnn, resnet18, mlp or gpt", name)
}

const mlpWidth = 4096

// mlp has six hidden layers: 100,728,842 parameters.
func mlp(scope *model.Scope, x *graph.Node) *graph.Node {
	for i := range 6 {
		x = activation.Relu(layers.Dense(scope.In("hidden_%d", i+1), x, true, mlpWidth))
	}
	return layers.Dense(scope.In("logits"), x, true, 10)
}

var gpt = models.GPTConfig{VocabSize: 256, ContextLength: 256, Layers: 6, Heads: 6, Width: 384}

// inputs are those of a step, and their labels.
type inputs struct {
	values, labels   any // Slices of float32 or int32.
	size, labelsSize []int
}

// images returns a function that makes random images of a size in ten classes.
func images(size ...int) func(n int, rng *rand.Rand) inputs {
	return func(n int, rng *rand.Rand) inputs {
		in := inputs{size: append([]int{n}, size...), labelsSize: []int{n, 1}}
		values, labels := make([]float32, shapes.Make(dtypes.Float32, in.size...).Size()), make([]int32, n)
		for i := range values {
			values[i] = rng.Float32()
		}
		for i := range labels {
			labels[i] = int32(i % 10)
		}
		in.values, in.labels = values, labels
		return in
	}
}

// texts makes random tokens, and those that come next.
func texts(n int, rng *rand.Rand) inputs {
	tokens := make([]int32, n*gpt.ContextLength+1)
	for i := range tokens {
		tokens[i] = int32(rng.IntN(gpt.VocabSize))
	}
	size := []int{n, gpt.ContextLength}
	return inputs{values: tokens[:len(tokens)-1], labels: tokens[1:], size: size, labelsSize: size}
}

// batch returns a copy for one step, which consumes it.
func (in inputs) batch() train.Batch {
	return train.Batch{Inputs: []*tensors.Tensor{tensor(in.values, in.size)}, Labels: []*tensors.Tensor{tensor(in.labels, in.labelsSize)}}
}

func tensor(values any, size []int) *tensors.Tensor {
	switch values := values.(type) {
	case []float32:
		return tensors.FromFlatDataAndDimensions(values, size...)
	case []int32:
		return tensors.FromFlatDataAndDimensions(values, size...)
	}
	panic(fmt.Sprintf("inputs of type %T", values))
}
