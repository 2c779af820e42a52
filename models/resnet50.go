package models

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
)

// ResNet50 returns a residual network of 50 layers for images of ImageNet's size (He et al., Deep
// Residual Learning for Image Recognition, 2015, https://arxiv.org/abs/1512.03385). As in
// torchvision, the 3x3 convolution of a block has the stride, not the 1x1 convolution before it.
// For 1,000 classes it has 25,557,032 parameters.
//
// The network's x is [batch, height, width, 3], with a height and width of at least 32, preferably
// 224. Its result is logits, [batch, classes]. In training, batch normalization uses the mean and
// variance of the batch: see cnn.BatchNorm.
//
// These are the variables, and the tensors of torchvision's resnet50 with the same values. A kernel
// is [height, width, in, out] here and [out, in, height, width] there, the weights of a dense layer
// are [in, out] here and [out, in] there.
//
//	first/conv/weights                              conv1.weight
//	first/batch_normalization/...                   bn1....
//	stage_1/block_1/conv1/conv/weights              layer1.0.conv1.weight
//	stage_1/block_1/conv1/batch_normalization/...   layer1.0.bn1....
//	stage_1/block_1/shortcut/conv/weights           layer1.0.downsample.0.weight
//	stage_1/block_1/shortcut/batch_normalization/... layer1.0.downsample.1....
//	logits/dense/weights, logits/dense/biases       fc.weight, fc.bias
//
// The parts of a batch normalization are scale, offset, mean and variance here, and weight, bias,
// running_mean and running_var there.
func ResNet50(classes int) func(scope *model.Scope, x *graph.Node) *graph.Node {
	return func(scope *model.Scope, x *graph.Node) *graph.Node {
		checkImages("models.ResNet50", x, classes, 32)
		x = activation.Relu(normalizedConvolution(scope.In("first"), x, 64, 7, 2))
		x = graph.MaxPool(x).Window(3).Strides(2).PaddingPerDim([][2]int{{1, 1}, {1, 1}}).Done()
		return stages(scope, x, classes, 64, []int{3, 4, 6, 3}, bottleneck)
	}
}

// checkImages panics unless x has color images with at least this number of pixels on each side.
func checkImages(network string, x *graph.Node, classes, pixels int) {
	if classes < 1 {
		panic(fmt.Errorf("%s: %d classes; there must be at least 1", network, classes))
	}
	if x.Rank() != 4 || x.Shape().Dimensions[3] != 3 || min(x.Shape().Dimensions[1], x.Shape().Dimensions[2]) < pixels {
		panic(fmt.Errorf("%s: x has shape %s; it must be [batch, height, width, 3], with a height and width of at least %d", network, x.Shape(), pixels))
	}
}

// bottleneck is a block of 1x1, 3x3 and 1x1 convolutions and a shortcut around them. Its result has
// four times as many channels as the first two have. If the shapes differ, the shortcut is a 1x1
// convolution.
func bottleneck(scope *model.Scope, x *graph.Node, channels, stride int) *graph.Node {
	y := activation.Relu(normalizedConvolution(scope.In("conv1"), x, channels, 1, 1))
	y = activation.Relu(normalizedConvolution(scope.In("conv2"), y, channels, 3, stride))
	y = normalizedConvolution(scope.In("conv3"), y, 4*channels, 1, 1)
	if stride != 1 || x.Shape().Dimensions[3] != 4*channels {
		x = normalizedConvolution(scope.In("shortcut"), x, 4*channels, 1, stride)
	}
	return activation.Relu(graph.Add(x, y))
}
