package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/models"
	"gonbatch/trainer"
)

// task is a network, its optimizer, and the size of one of its inputs.
type task struct {
	network   func(*model.Scope, *graph.Node) *graph.Node
	optimizer optimizer.Interface
	size      []int
}

// newTask returns the task with that name; bench/peers/networks.py has the same networks.
func newTask(name string) (task, error) {
	switch name {
	case "cnn":
		return task{models.MNIST, optimizer.Adam().LearningRate(1e-3).Done(), []int{28, 28, 1}}, nil
	case "resnet18":
		return task{models.ResNet18(10), trainer.SGD{LearningRate: 0.01, Momentum: 0.9}, []int{32, 32, 3}}, nil
	case "mlp":
		return task{mlp, optimizer.Adam().LearningRate(1e-4).Done(), []int{mlpWidth}}, nil
	}
	return task{}, fmt.Errorf("-model %s: want cnn, resnet18 or mlp", name)
}

const mlpWidth = 4096

// mlp has six hidden layers: 100,728,842 parameters.
func mlp(scope *model.Scope, x *graph.Node) *graph.Node {
	for i := range 6 {
		x = activation.Relu(layers.Dense(scope.In("hidden_%d", i+1), x, true, mlpWidth))
	}
	return layers.Dense(scope.In("logits"), x, true, 10)
}

// inputs are random inputs of one size, and their labels.
type inputs struct {
	size   []int
	values []float32
	labels []int32
}

func randomInputs(n int, size []int, seed uint64) inputs {
	rng := rand.New(rand.NewPCG(1, seed))
	in := inputs{size: append([]int{n}, size...), labels: make([]int32, n)}
	length := 1
	for _, s := range in.size {
		length *= s
	}
	for range length {
		in.values = append(in.values, rng.Float32())
	}
	for i := range in.labels {
		in.labels[i] = int32(i % 10)
	}
	return in
}

// batch returns a copy for one step, which consumes it.
func (in inputs) batch() train.Batch {
	return train.Batch{
		Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(in.values, in.size...)},
		Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(in.labels, len(in.labels), 1)},
	}
}
