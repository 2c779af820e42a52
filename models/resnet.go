package models

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/models/cnn"
)

// ResNet18 returns a residual network of 18 layers for images of CIFAR's size (He et al., Deep
// Residual Learning for Image Recognition, 2015, https://arxiv.org/abs/1512.03385). Its first layer
// is the usual one for CIFAR's small images: a 3x3 convolution without pooling. For ten classes it
// has 11,173,962 parameters.
//
// The network's x is [batch, height, width, 3], with a height and width of at least 8, preferably
// 32. Its result is logits, [batch, classes]. In training, batch normalization uses the mean and
// variance of the batch: see cnn.BatchNorm.
//
// These are the variables, and the tensors of torchvision's resnet18 with the same values. Its
// conv1 must be replaced by a Conv2d(3, 64, 3, padding=1, bias=False), and its maxpool by an
// Identity. A kernel is [height, width, in, out] here and [out, in, height, width] there, the
// weights of a dense layer are [in, out] here and [out, in] there.
//
//	first/conv/weights                              conv1.weight
//	first/batch_normalization/...                   bn1....
//	stage_1/block_1/conv1/conv/weights              layer1.0.conv1.weight
//	stage_1/block_1/conv1/batch_normalization/...   layer1.0.bn1....
//	stage_2/block_1/shortcut/conv/weights           layer2.0.downsample.0.weight
//	stage_2/block_1/shortcut/batch_normalization/... layer2.0.downsample.1....
//	logits/dense/weights, logits/dense/biases       fc.weight, fc.bias
//
// The parts of a batch normalization are scale, offset, mean and variance here, and weight, bias,
// running_mean and running_var there. trainer.InitFromTorch converts all of them: its layers are
// "conv1" and "bn1" for "/first", "layer1.0.conv1" and "layer1.0.bn1" for "/stage_1/block_1/conv1",
// and so on.
func ResNet18(classes int) func(scope *model.Scope, x *graph.Node) *graph.Node {
	return NarrowResNet18(classes, 64)
}

// NarrowResNet18 is like ResNet18, with another number of channels than 64 in the first stage; each
// later stage has twice as many as the one before. With half as many channels, the network has
// about a quarter of the parameters, and computes in about a quarter of the time.
func NarrowResNet18(classes, channels int) func(scope *model.Scope, x *graph.Node) *graph.Node {
	return func(scope *model.Scope, x *graph.Node) *graph.Node {
		if channels < 1 {
			panic(fmt.Errorf("models.NarrowResNet18: channels must be at least 1, got %d", channels))
		}
		checkImages("models.ResNet18", x, classes, 8)
		x = activation.Relu(normalizedConvolution(scope.In("first"), x, channels, 3, 1))
		return stages(scope, x, classes, channels, []int{2, 2, 2, 2}, residual)
	}
}

// stages is a ResNet after its first layer. Each stage has so many blocks, and twice as many
// channels as the one before.
func stages(scope *model.Scope, x *graph.Node, classes, channels int, blocks []int, block func(scope *model.Scope, x *graph.Node, channels, stride int) *graph.Node) *graph.Node {
	for i, n := range blocks {
		stage := scope.In("stage_%d", i+1)
		for j := range n {
			stride := 1
			if i > 0 && j == 0 {
				stride = 2
			}
			x = block(stage.In("block_%d", j+1), x, channels<<i, stride)
		}
	}
	return layers.Dense(scope.In("logits"), graph.ReduceMean(x, 1, 2), true, classes)
}

// residual is a basic block: two 3x3 convolutions and a shortcut around them. If the shapes differ,
// the shortcut is a 1x1 convolution (option B in section 3.3 of the paper).
func residual(scope *model.Scope, x *graph.Node, channels, stride int) *graph.Node {
	y := activation.Relu(normalizedConvolution(scope.In("conv1"), x, channels, 3, stride))
	y = normalizedConvolution(scope.In("conv2"), y, channels, 3, 1)
	if stride != 1 || x.Shape().Dimensions[3] != channels {
		x = normalizedConvolution(scope.In("shortcut"), x, channels, 1, stride)
	}
	return activation.Relu(graph.Add(x, y))
}

// normalizedConvolution is a convolution with batch normalization, with the usual constants of
// ResNets.
func normalizedConvolution(scope *model.Scope, x *graph.Node, channels, kernel, stride int) *graph.Node {
	y := cnn.Convolution(scope, x).Channels(channels).KernelSize(kernel).Strides(stride).PadSame().UseBias(false).Done()
	return cnn.BatchNorm(scope, y).Done()
}
