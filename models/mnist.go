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
// 128 units. It has 421,642 parameters. The structure is that of LeNet-5 (LeCun et al.,
// Gradient-Based Learning Applied to Document Recognition, 1998,
// https://doi.org/10.1109/5.726791), the sizes are those of PyTorch's example for MNIST
// (https://github.com/pytorch/examples), which pools only once.
//
// x is [batch, 28, 28, 1]. The result is logits, [batch, 10].
//
// These are the variables, and the tensors of a network in PyTorch with the layers conv1, conv2,
// hidden and logits. A kernel is [height, width, in, out] here and [out, in, height, width] there,
// the weights of a dense layer are [in, out] here and [out, in] there.
//
//	conv1/conv/weights, biases    conv1.weight, bias
//	conv2/conv/weights, biases    conv2.weight, bias
//	hidden/dense/weights, biases  hidden.weight, bias
//	logits/dense/weights, biases  logits.weight, bias
//
// If the network in PyTorch has a Flatten before hidden, the order of its inputs is another one:
// trainer.TorchFlattened(64, 7, 7) converts its weights.
func MNIST(scope *model.Scope, x *graph.Node) *graph.Node {
	if x.Rank() != 4 || x.Shape().Dimensions[1] != 28 || x.Shape().Dimensions[2] != 28 || x.Shape().Dimensions[3] != 1 {
		panic(fmt.Errorf("models.MNIST: x has shape %s; it must be [batch, 28, 28, 1]", x.Shape()))
	}
	x = block(scope.In("conv1"), x, 32) // [batch, 14, 14, 32]
	x = block(scope.In("conv2"), x, 64) // [batch, 7, 7, 64]
	x = activation.Relu(layers.Dense(scope.In("hidden"), flat(x), true, 128))
	return layers.Dense(scope.In("logits"), x, true, 10)
}

// block convolves, and halves the height and width.
func block(scope *model.Scope, x *graph.Node, channels int) *graph.Node {
	return cnn.Convolution(scope, x).Channels(channels).KernelSize(3).PadSame().MaxPool2x2().Relu().Done()
}
