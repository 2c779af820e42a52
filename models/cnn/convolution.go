package cnn

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
)

// ConvolutionBuilder configures a convolution. Create it with [Convolution], set at least Channels
// and KernelSize, and call Done.
type ConvolutionBuilder struct {
	scope       *model.Scope
	x           *graph.Node
	channels    int
	kernel      [2]int
	stride      [2]int
	same        bool
	bias        bool
	pool, relu  bool
	regularizer regularizer.Regularizer
}

// Convolution convolves the images x, [batch, height, width, channels], with learned kernels.
//
// It replaces GoMLX's layers.Convolution(scope, x): it has the same values, gradients, defaults and
// variables, so each can load the other's checkpoints. On a CPU it chooses the algorithm according
// to the sizes. Values differ from GoMLX's by rounding, about 1e-6 of the largest value.
//
// If the height or width of the kernel is even, the gradients differ: GoMLX 0.28 computes that of x
// one pixel off. Those of this layer are right on every platform.
//
// It does not support dilations, groups, channels first, or one or three dimensions: use GoMLX's
// layer for them, and where you need the gradient of a gradient.
func Convolution(scope *model.Scope, x *graph.Node) *ConvolutionBuilder {
	if x.Rank() != 4 {
		panic(fmt.Errorf("cnn.Convolution: x has shape %s; it must be [batch, height, width, channels]", x.Shape()))
	}
	return &ConvolutionBuilder{scope: scope, x: x, stride: [2]int{1, 1}, bias: true, regularizer: regularizer.FromScope(scope)}
}

// Channels sets the number of channels of the result. It has no default.
func (b *ConvolutionBuilder) Channels(channels int) *ConvolutionBuilder {
	b.channels = channels
	return b
}

// KernelSize sets the kernel's height and width in pixels. It has no default.
func (b *ConvolutionBuilder) KernelSize(size int) *ConvolutionBuilder {
	return b.KernelSizePerAxis(size, size)
}

// KernelSizePerAxis sets the kernel's height and width in pixels. They have no default.
func (b *ConvolutionBuilder) KernelSizePerAxis(height, width int) *ConvolutionBuilder {
	b.kernel = [2]int{height, width}
	return b
}

// Strides sets how many pixels the kernel moves, down and to the right. The default is 1.
func (b *ConvolutionBuilder) Strides(stride int) *ConvolutionBuilder {
	return b.StridePerAxis(stride, stride)
}

// StridePerAxis sets how many pixels the kernel moves, separately down and to the right.
func (b *ConvolutionBuilder) StridePerAxis(down, right int) *ConvolutionBuilder {
	b.stride = [2]int{down, right}
	return b
}

// PadSame adds (size-1)/2 rows or columns of zeros before the image and size/2 after it, for a
// kernel of that size. With a stride of 1 the result is as large as x.
func (b *ConvolutionBuilder) PadSame() *ConvolutionBuilder {
	b.same = true
	return b
}

// NoPadding makes the kernel see only pixels of the image. It is the default.
func (b *ConvolutionBuilder) NoPadding() *ConvolutionBuilder {
	b.same = false
	return b
}

// UseBias sets whether to add a learned value to each channel. The default is true.
func (b *ConvolutionBuilder) UseBias(bias bool) *ConvolutionBuilder {
	b.bias = bias
	return b
}

// MaxPool2x2 takes the maximum of each 2x2 window of the result, as the function [MaxPool2x2] does.
// It does so before the bias and Relu. That changes no value, because both keep the order of the
// pixels, but leaves them only a quarter of the pixels.
func (b *ConvolutionBuilder) MaxPool2x2() *ConvolutionBuilder {
	b.pool = true
	return b
}

// Relu sets negative results to zero.
func (b *ConvolutionBuilder) Relu() *ConvolutionBuilder {
	b.relu = true
	return b
}

// Regularizer sets the regularizer of the kernels, instead of the one in the scope's
// hyper-parameters (see GoMLX's regularizer.FromScope). Nil means none.
func (b *ConvolutionBuilder) Regularizer(r regularizer.Regularizer) *ConvolutionBuilder {
	b.regularizer = r
	return b
}

// Done builds the layer and returns its result, [batch, height, width, channels]. The kernels are
// the variable conv/weights, [height, width, in, out], and the biases conv/biases, [out].
//
// It panics if the sizes don't fit.
func (b *ConvolutionBuilder) Done() *graph.Node {
	b.check()
	scope, g := b.scope.In("conv"), b.x.Graph()
	weights := scope.VariableWithShape("weights", shapes.Make(b.x.DType(), b.kernel[0], b.kernel[1], lastDimension(b.x), b.channels))
	if b.regularizer != nil {
		b.regularizer(g, weights)
	}
	y := convolution{x: b.x, w: weights.NodeValue(g), stride: b.stride, padding: b.padding()}.node()
	if b.pool {
		y = MaxPool2x2(y)
	}
	if b.bias {
		y = AddBias(y, scope.VariableWithShape("biases", shapes.Make(b.x.DType(), b.channels)).NodeValue(g))
	}
	if b.relu {
		y = activation.Relu(y)
	}
	return y
}

func (b *ConvolutionBuilder) padding() (zeros [2][2]int) {
	if b.same {
		for axis, size := range b.kernel {
			zeros[axis] = [2]int{(size - 1) / 2, size / 2}
		}
	}
	return zeros
}

func (b *ConvolutionBuilder) check() {
	switch {
	case b.channels < 1:
		panic(fmt.Errorf("cnn.Convolution: %d channels: call Channels with at least 1", b.channels))
	case min(b.kernel[0], b.kernel[1]) < 1:
		panic(fmt.Errorf("cnn.Convolution: a kernel of %d x %d pixels: call KernelSize with at least 1", b.kernel[0], b.kernel[1]))
	case min(b.stride[0], b.stride[1]) < 1:
		panic(fmt.Errorf("cnn.Convolution: strides %v: they must be at least 1", b.stride))
	}
	for axis, zeros := range b.padding() {
		if size := b.x.Shape().Dimensions[1+axis] + zeros[0] + zeros[1]; size < b.kernel[axis] {
			panic(fmt.Errorf("cnn.Convolution: x has shape %s, which is smaller than the kernel of %d x %d pixels: call PadSame, or use a smaller kernel", b.x.Shape(), b.kernel[0], b.kernel[1]))
		}
	}
}

// AddBias adds a value to each channel of x, [..., channels]; bias is [channels]. On a CPU its
// gradient takes a fifth of the time of graph.Add's gradient.
func AddBias(x, bias *graph.Node) *graph.Node {
	add := operation{plain: func(in []*graph.Node) *graph.Node {
		return graph.Add(in[0], graph.ExpandLeftToRank(in[1], in[0].Rank()))
	}}
	if fast(x) {
		add.gradients = []func(*graph.Node) *graph.Node{nil, channelSum}
	}
	return add.of(x, bias)
}
