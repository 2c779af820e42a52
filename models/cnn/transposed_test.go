package cnn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/internal/forecast"
	"gonbatch/models/cnn"
	"gonbatch/models/modelstest"
)

// transposedCase is a transposed convolution and the size of its image.
type transposedCase struct {
	height, width, in, out, kernel, stride, padding int
	bias                                            bool
}

func (c transposedCase) ours(scope *model.Scope, x *graph.Node) *graph.Node {
	return cnn.TransposedConvolution(scope, x).Channels(c.out).KernelSize(c.kernel).Strides(c.stride).Padding(c.padding).UseBias(c.bias).Done()
}

// plain is the definition: it adds up a copy of the kernel for each pixel. For each place in the
// kernel, it puts zeros between the products with the pixels, and around them.
func (c transposedCase) plain(scope *model.Scope, x *graph.Node) *graph.Node {
	scope = scope.In("transposed_conv")
	w := scope.VariableWithShape("weights", shapes.Make(x.DType(), c.kernel, c.kernel, c.in, c.out)).NodeValue(x.Graph())
	var y *graph.Node
	for i := range c.kernel {
		for j := range c.kernel {
			tap := graph.Reshape(graph.Slice(w, graph.AxisElem(i), graph.AxisElem(j)), c.in, c.out)
			product := graph.Dot(graph.Reshape(x, -1, c.in), tap).Product()
			if placed := c.placed(product, i, j); y == nil {
				y = placed
			} else {
				y = graph.Add(y, placed)
			}
		}
	}
	d := y.Shape().Dimensions
	y = graph.Slice(y, graph.AxisRange(), graph.AxisRange(c.padding, d[1]-c.padding), graph.AxisRange(c.padding, d[2]-c.padding))
	if c.bias {
		bias := scope.VariableWithShape("biases", shapes.Make(x.DType(), c.out)).NodeValue(x.Graph())
		y = graph.Add(y, graph.ExpandLeftToRank(bias, 4))
	}
	return y
}

// placed puts pixels, [batch*height*width, out], at multiples of the stride, from row i and column
// j.
func (c transposedCase) placed(pixels *graph.Node, i, j int) *graph.Node {
	x := graph.Reshape(pixels, -1, c.height, 1, c.width, 1, c.out)
	x = withZeros(withZeros(x, 2, 0, c.stride-1), 4, 0, c.stride-1)
	x = graph.Reshape(x, -1, c.height*c.stride, c.width*c.stride, c.out)
	x = graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, (c.height-1)*c.stride+1), graph.AxisRange(0, (c.width-1)*c.stride+1))
	return withZeros(withZeros(x, 1, i, c.kernel-1-i), 2, j, c.kernel-1-j)
}

// withZeros is a Pad that has a gradient.
func withZeros(x *graph.Node, axis, before, after int) *graph.Node {
	parts := []*graph.Node{x}
	for i, n := range []int{before, after} {
		if n > 0 {
			shape := x.Shape().Clone()
			shape.Dimensions[axis] = n
			parts = slices.Insert(parts, i*len(parts), graph.Zeros(x.Graph(), shape))
		}
	}
	return graph.Concatenate(parts, axis)
}

// TestTransposedConvolution: values and gradients equal those of the usual definition.
func TestTransposedConvolution(t *testing.T) {
	for i, c := range []transposedCase{
		{height: 3, width: 4, in: 3, out: 2, kernel: 4, stride: 2, padding: 1, bias: true},
		{height: 5, width: 2, in: 2, out: 3, kernel: 2, stride: 2},
		{height: 1, width: 1, in: 5, out: 3, kernel: 4, stride: 4},
		{height: 1, width: 1, in: 5, out: 3, kernel: 4, stride: 1, bias: true},
		{height: 4, width: 3, in: 1, out: 4, kernel: 3, stride: 1, padding: 1},
		{height: 3, width: 4, in: 2, out: 2, kernel: 5, stride: 2, padding: 2},
		{height: 3, width: 2, in: 2, out: 3, kernel: 2, stride: 3, padding: 1, bias: true},
		{height: 3, width: 2, in: 2, out: 1, kernel: 7, stride: 3, padding: 0},
		{height: 4, width: 3, in: 256, out: 130, kernel: 4, stride: 2, padding: 1, bias: true}, // Many weights, few pixels.
		{height: 1, width: 2, in: 100, out: 340, kernel: 4, stride: 1},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			compare(t, c.ours, c.plain, modelstest.Noise(uint64(i), 2, c.height, c.width, c.in), true)
		})
	}
}

// TestEvenKernelsAsOnGPUs: with GoMLX's own operations, as on a GPU, kernels of even sizes have the
// right gradients too.
func TestEvenKernelsAsOnGPUs(t *testing.T) {
	forecast.ForGPU.Store(true)
	defer forecast.ForGPU.Store(false)
	image := modelstest.Noise(1, 2, 8, 6, 3)
	for _, c := range []convolutionCase{
		{in: 3, out: 2, kernel: [2]int{4, 4}, stride: [2]int{2, 2}, same: true, bias: true},
		{in: 3, out: 2, kernel: [2]int{2, 2}, stride: [2]int{2, 2}},
		{in: 3, out: 2, kernel: [2]int{2, 3}, stride: [2]int{1, 3}, same: true},
	} {
		compare(t, c.ours, c.plain, image, true)
	}
	c := transposedCase{height: 8, width: 6, in: 3, out: 2, kernel: 4, stride: 2, padding: 1, bias: true}
	compare(t, c.ours, c.plain, image, true)
}

// TestTransposedConvolutionRefuses: a wrong option or shape causes an error with the value and the
// fix.
func TestTransposedConvolutionRefuses(t *testing.T) {
	image := []int{1, 4, 3, 1}
	for _, tc := range []struct {
		want string
		size []int
		c    transposedCase
	}{
		{"x has shape (Float32)[4]; it must be [batch, height, width, channels]", []int{4}, transposedCase{}},
		{"0 channels: call Channels with at least 1", image, transposedCase{kernel: 3, stride: 1}},
		{"a kernel of 0 x 0 pixels: call KernelSize", image, transposedCase{out: 1, stride: 1}},
		{"a stride of 0: it must be at least 1", image, transposedCase{out: 1, kernel: 3}},
		{"a padding of -1: it must be at least 0", image, transposedCase{out: 1, kernel: 3, stride: 1, padding: -1}},
		{"a kernel of 2 pixels, a stride of 1 and a padding of 2 leave 1 x 0 pixels: use a smaller padding", image, transposedCase{out: 1, kernel: 2, stride: 1, padding: 2}},
	} {
		t.Run(tc.want, func(t *testing.T) {
			_, err := model.CallOnce(modelstest.Backend(t), model.NewStore(), tc.c.ours, modelstest.Noise(1, tc.size...))
			if err == nil || !strings.Contains(err.Error(), "cnn.TransposedConvolution: ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
