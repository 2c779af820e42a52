package models

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/models/cnn"
)

// MNIST is a small convolutional network for 28x28 gray images of ten classes. It has two blocks
// with a 3x3 convolution, 2x2 max-pooling and ReLU, with 32 and 64 channels, and a hidden layer of
// 128 units. It has 421,642 parameters.
//
// x is [batch, 28, 28, 1]. The result is logits, [batch, 10].
func MNIST(scope *model.Scope, x *graph.Node) *graph.Node {
	if x.Rank() != 4 || x.Shape().Dimensions[1] != 28 || x.Shape().Dimensions[2] != 28 || x.Shape().Dimensions[3] != 1 {
		panic(fmt.Errorf("models.MNIST: x has shape %s; it must be [batch, 28, 28, 1]", x.Shape()))
	}
	x = block(scope.In("conv1"), x, 32) // [batch, 14, 14, 32]
	x = block(scope.In("conv2"), x, 64) // [batch, 7, 7, 64]
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = activation.Relu(layers.Dense(scope.In("hidden"), x, true, 128))
	return layers.Dense(scope.In("logits"), x, true, 10)
}

// block convolves, and halves the height and width.
func block(scope *model.Scope, x *graph.Node, channels int) *graph.Node {
	return cnn.Convolution(scope, x).Channels(channels).KernelSize(3).PadSame().MaxPool2x2().Relu().Done()
}
