package models

import (
	"cmp"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/models/cnn"
)

// UNetConfig is the size of a U-Net. Classes must be set; a zero of the others means its default.
type UNetConfig struct {
	Classes int  // Channels of the result.
	Depth   int  // How often the encoder halves height and width. The default is 4.
	Width   int  // Channels at full size; each halving doubles them. The default is 64.
	NoNorm  bool // Whether convolutions have biases instead of batch normalization.
}

// Validate returns an error that names a value which no U-Net can have.
func (c UNetConfig) Validate() error {
	switch {
	case c.Classes < 1:
		return fmt.Errorf("models.UNetConfig: Classes must be at least 1, got %d", c.Classes)
	case c.Depth < 0 || c.Depth > 16:
		return fmt.Errorf("models.UNetConfig: Depth must be from 1 to 16, or 0 for 4, got %d", c.Depth)
	case c.Width < 0:
		return fmt.Errorf("models.UNetConfig: Width must be at least 1, or 0 for 64, got %d", c.Width)
	}
	return nil
}

// withDefaults replaces zeros.
func (c UNetConfig) withDefaults() UNetConfig {
	c.Depth, c.Width = cmp.Or(c.Depth, 4), cmp.Or(c.Width, 64)
	return c
}

// UNet returns a network that gives each pixel of an image logits, as for segmentation: an encoder
// that halves the image Depth times, and a decoder that doubles it again and gets the encoder's
// results of each size (Ronneberger et al., U-Net: Convolutional Networks for Biomedical Image
// Segmentation, 2015, https://arxiv.org/abs/1505.04597). Unlike the paper's, its convolutions keep
// the size of the image, and batch normalization follows them. With the defaults, 3 channels and 1
// class it has 31,037,633 parameters.
//
// The network's x is [batch, height, width, channels], with a height and width that are multiples
// of 2^Depth. Its result is logits, [batch, height, width, Classes]. With labels [batch, height,
// width, 1] of an integer type, its loss is GoMLX's loss.SparseCategoricalCrossEntropyLogits.
//
// These are the variables, and the tensors of the usual U-Net in PyTorch
// (https://github.com/milesial/Pytorch-UNet, with bilinear=False) with the same values, for a Depth
// of 4. A kernel is [height, width, in, out] here; there it is [out, in, height, width], and [in,
// out, height, width] for a transposed convolution.
//
//	down_0/conv1/conv/weights              inc.double_conv.0.weight
//	down_0/conv1/batch_normalization/...   inc.double_conv.1....
//	down_0/conv2/...                       inc.double_conv.3.weight, inc.double_conv.4....
//	down_1/conv1/...                       down1.maxpool_conv.1.double_conv.0.weight, ...
//	up_3/transposed_conv/weights, biases   up1.up.weight, up1.up.bias
//	up_3/conv1/...                         up1.conv.double_conv.0.weight, ...
//	up_0/...                               up4....
//	logits/conv/weights, biases            outc.conv.weight, outc.conv.bias
//
// Here up_0 computes images of full size, as down_0 does. The parts of a batch normalization are
// scale, offset, mean and variance here, and weight, bias, running_mean and running_var there. With
// NoNorm, conv1 and conv2 have conv/biases instead.
func UNet(c UNetConfig) func(scope *model.Scope, x *graph.Node) *graph.Node {
	return func(scope *model.Scope, x *graph.Node) *graph.Node {
		c := c.checked(x)
		skipped := make([]*graph.Node, c.Depth)
		for i := range c.Depth {
			skipped[i] = c.twice(scope.In("down_%d", i), x, c.Width<<i)
			x = cnn.MaxPool2x2(skipped[i])
		}
		x = c.twice(scope.In("down_%d", c.Depth), x, c.Width<<c.Depth)
		for i := c.Depth - 1; i >= 0; i-- {
			up := scope.In("up_%d", i)
			x = cnn.TransposedConvolution(up, x).Channels(c.Width << i).KernelSize(2).Strides(2).Done()
			x = c.twice(up, graph.Concatenate([]*graph.Node{skipped[i], x}, -1), c.Width<<i)
		}
		return cnn.Convolution(scope.In("logits"), x).Channels(c.Classes).KernelSize(1).Done()
	}
}

// checked returns the configuration with its defaults, or panics if it or x is wrong.
func (c UNetConfig) checked(x *graph.Node) UNetConfig {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	c = c.withDefaults()
	if x.Rank() != 4 {
		panic(fmt.Errorf("models.UNet: x has shape %s; it must be [batch, height, width, channels]", x.Shape()))
	}
	if d, unit := x.Shape().Dimensions, 1<<c.Depth; d[1]%unit != 0 || d[2]%unit != 0 {
		panic(fmt.Errorf("models.UNet: x has shape %s; with a Depth of %d, height and width must be multiples of %d: crop or pad the images, or use a smaller Depth", x.Shape(), c.Depth, unit))
	}
	return c
}

// twice is two 3x3 convolutions, each with its normalization and ReLU.
func (c UNetConfig) twice(scope *model.Scope, x *graph.Node, channels int) *graph.Node {
	for i := range 2 {
		conv := scope.In("conv%d", i+1)
		if c.NoNorm {
			x = cnn.Convolution(conv, x).Channels(channels).KernelSize(3).PadSame().Relu().Done()
		} else {
			x = activation.Relu(normalizedConvolution(conv, x, channels, 3, 1))
		}
	}
	return x
}
