package cnn

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
)

// TransposedConvolutionBuilder configures a transposed convolution. Create it with
// [TransposedConvolution], set at least Channels and KernelSize, and call Done.
type TransposedConvolutionBuilder struct {
	scope                             *model.Scope
	x                                 *graph.Node
	channels, kernel, stride, padding int
	bias                              bool
	regularizer                       regularizer.Regularizer
}

// TransposedConvolution enlarges the images x, [batch, height, width, channels], with learned
// kernels: it adds up a copy of the kernel for each pixel, Strides pixels apart. It is the
// transpose of the linear map of a convolution with that stride, also called a deconvolution or a
// fractionally-strided convolution (Dumoulin and Visin, A guide to convolution arithmetic for deep
// learning, 2016, https://arxiv.org/abs/1603.07285).
//
// GoMLX has no such layer. This one is a convolution of x with stride 1 that computes all pixels of
// a stride as channels, so nothing is multiplied by the zeros that the usual definition puts
// between the pixels, and its gradients are those of ordinary convolutions on all platforms.
func TransposedConvolution(scope *model.Scope, x *graph.Node) *TransposedConvolutionBuilder {
	if x.Rank() != 4 {
		panic(fmt.Errorf("cnn.TransposedConvolution: x has shape %s; it must be [batch, height, width, channels]", x.Shape()))
	}
	return &TransposedConvolutionBuilder{scope: scope, x: x, stride: 1, bias: true, regularizer: regularizer.FromScope(scope)}
}

// Channels sets the number of channels of the result. It has no default.
func (b *TransposedConvolutionBuilder) Channels(channels int) *TransposedConvolutionBuilder {
	b.channels = channels
	return b
}

// KernelSize sets the kernel's height and width in pixels. It has no default.
func (b *TransposedConvolutionBuilder) KernelSize(size int) *TransposedConvolutionBuilder {
	b.kernel = size
	return b
}

// Strides sets how many pixels of the result lie between the kernels of neighboring pixels of x,
// down and to the right. The default is 1.
func (b *TransposedConvolutionBuilder) Strides(stride int) *TransposedConvolutionBuilder {
	b.stride = stride
	return b
}

// Padding sets how many rows and columns are cut off each side of the result, as PyTorch's padding
// does. The default is 0.
func (b *TransposedConvolutionBuilder) Padding(pixels int) *TransposedConvolutionBuilder {
	b.padding = pixels
	return b
}

// UseBias sets whether to add a learned value to each channel. The default is true.
func (b *TransposedConvolutionBuilder) UseBias(bias bool) *TransposedConvolutionBuilder {
	b.bias = bias
	return b
}

// Done builds the layer and returns its result, [batch, (height-1)*stride + kernel - 2*padding,
// (width-1)*stride + kernel - 2*padding, channels]. The kernels are the variable
// transposed_conv/weights, [height, width, in, out], and the biases transposed_conv/biases, [out].
// (PyTorch's ConvTranspose2d has kernels [in, out, height, width].)
//
// It panics if the sizes don't fit.
func (b *TransposedConvolutionBuilder) Done() *graph.Node {
	b.check()
	scope, g := b.scope.In("transposed_conv"), b.x.Graph()
	weights := scope.VariableWithShape("weights", shapes.Make(b.x.DType(), b.kernel, b.kernel, lastDimension(b.x), b.channels))
	if b.regularizer != nil {
		b.regularizer(g, weights)
	}
	y := transposed{x: b.x, w: weights.NodeValue(g), stride: [2]int{b.stride, b.stride}}.node()
	height, width := b.sizes()
	y = graph.Slice(y, graph.AxisRange(), graph.AxisRange(b.padding, b.padding+height), graph.AxisRange(b.padding, b.padding+width), graph.AxisRange())
	if b.bias {
		y = AddBias(y, scope.VariableWithShape("biases", shapes.Make(b.x.DType(), b.channels)).NodeValue(g))
	}
	return y
}

func (b *TransposedConvolutionBuilder) check() {
	switch {
	case b.channels < 1:
		panic(fmt.Errorf("cnn.TransposedConvolution: %d channels: call Channels with at least 1", b.channels))
	case b.kernel < 1:
		panic(fmt.Errorf("cnn.TransposedConvolution: a kernel of %d x %d pixels: call KernelSize with at least 1", b.kernel, b.kernel))
	case b.stride < 1:
		panic(fmt.Errorf("cnn.TransposedConvolution: a stride of %d: it must be at least 1", b.stride))
	case b.padding < 0:
		panic(fmt.Errorf("cnn.TransposedConvolution: a padding of %d: it must be at least 0", b.padding))
	}
	if height, width := b.sizes(); min(height, width) < 1 {
		panic(fmt.Errorf("cnn.TransposedConvolution: x has shape %s, and a kernel of %d pixels, a stride of %d and a padding of %d leave %d x %d pixels: use a smaller padding", b.x.Shape(), b.kernel, b.stride, b.padding, height, width))
	}
}

// sizes returns the height and width of the result.
func (b *TransposedConvolutionBuilder) sizes() (height, width int) {
	size := func(x int) int { return (x-1)*b.stride + b.kernel - 2*b.padding }
	return size(b.x.Shape().Dimensions[1]), size(b.x.Shape().Dimensions[2])
}

// transposed is a transposed convolution of x, [batch, height, width, in], with w, [rows, columns,
// in, out], and without padding.
type transposed struct {
	x, w   *graph.Node
	stride [2]int
}

// node computes it. Along one axis, with stride s, pixel s*q+r of the result is the sum over j of
// x[q-j] * w[s*j+r]. That is an ordinary convolution over q with the taps j in reverse order, and
// with r as a further channel.
func (t transposed) node() *graph.Node {
	k, s := t.w.Shape().Dimensions, t.stride
	taps := [2]int{(k[0] + s[0] - 1) / s[0], (k[1] + s[1] - 1) / s[1]}
	zero := graph.ScalarZero(t.w.Graph(), t.w.DType())
	w := graph.Pad(t.w, zero, graph.PadAxis{End: taps[0]*s[0] - k[0]}, graph.PadAxis{End: taps[1]*s[1] - k[1]}, graph.PadAxis{}, graph.PadAxis{})
	w = graph.Reverse(graph.Reshape(w, taps[0], s[0], taps[1], s[1], k[2], k[3]), 0, 2)
	w = graph.Reshape(graph.TransposeAllAxes(w, 0, 2, 4, 1, 3, 5), taps[0], taps[1], k[2], s[0]*s[1]*k[3])
	around := [2][2]int{{taps[0] - 1, taps[0] - 1}, {taps[1] - 1, taps[1] - 1}}
	y := convolution{x: t.x, w: w, stride: [2]int{1, 1}, padding: around}.node()
	d, in := y.Shape().Dimensions, t.x.Shape().Dimensions
	y = graph.TransposeAllAxes(graph.Reshape(y, d[0], d[1], d[2], s[0], s[1], k[3]), 0, 1, 3, 2, 4, 5)
	y = graph.Reshape(y, d[0], d[1]*s[0], d[2]*s[1], k[3])
	return graph.Slice(y, graph.AxisRange(), graph.AxisRange(0, (in[1]-1)*s[0]+k[0]), graph.AxisRange(0, (in[2]-1)*s[1]+k[1]), graph.AxisRange())
}
