package models

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
)

// Linear returns a linear network: one dense layer with biases. With 1 output and the mean squared
// error as its loss, it is a linear regression; with cross-entropy, a logistic one.
//
// The network's x is [batch, ...], of which all axes but the first are one. Its result is [batch,
// outputs]. Its variables are weights [in, outputs] and biases [outputs], of linear/dense.
// PyTorch's torch.nn.Linear has them as weight, which is [outputs, in], and bias.
func Linear(outputs int) func(scope *model.Scope, x *graph.Node) *graph.Node {
	return func(scope *model.Scope, x *graph.Node) *graph.Node {
		checkWidths("models.Linear", x, outputs)
		return layers.Dense(scope.In("linear"), flat(x), true, outputs)
	}
}

// MLP returns a multilayer perceptron (Rumelhart, Hinton and Williams, Learning Representations by
// Back-propagating Errors, 1986, https://doi.org/10.1038/323533a0): dense layers with biases. A
// ReLU follows each but the last, instead of the paper's sigmoid.
//
// The network's x is [batch, ...], of which all axes but the first are one. Its result is [batch,
// outputs]. hidden are the widths of the other layers, from the first on. The variables of layer i
// are weights [in, out] and biases [out] of layer_i/dense. In PyTorch, torch.nn.Sequential has its
// layers and its ReLUs in turn, so that these are 2i.weight, which is [out, in], and 2i.bias.
func MLP(outputs int, hidden ...int) func(scope *model.Scope, x *graph.Node) *graph.Node {
	return func(scope *model.Scope, x *graph.Node) *graph.Node {
		checkWidths("models.MLP", x, append([]int{outputs}, hidden...)...)
		x = flat(x)
		for i, width := range hidden {
			x = activation.Relu(layers.Dense(scope.In("layer_%d", i), x, true, width))
		}
		return layers.Dense(scope.In("layer_%d", len(hidden)), x, true, outputs)
	}
}

func checkWidths(function string, x *graph.Node, widths ...int) {
	if x.Rank() < 2 || !x.DType().IsFloat() {
		panic(fmt.Errorf("%s: x has shape %s; it must be [batch, ...] of floating-point numbers", function, x.Shape()))
	}
	for _, width := range widths {
		if width < 1 {
			panic(fmt.Errorf("%s: a layer of width %d; it must be at least 1", function, width))
		}
	}
}

// flat returns x as [batch, features].
func flat(x *graph.Node) *graph.Node {
	return graph.Reshape(x, x.Shape().Dimensions[0], -1)
}
