package augment

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/data/scale"
)

// Resize scales each image of x, [batch, height, width, channels] of a floating-point type, to this
// size, in training and elsewhere, without keeping its proportions. It is bilinear, and when images
// shrink, each pixel is an average over all that it covers. It computes in at least float32, and
// rounds once. It is data.Resize in the graph, and torchvision's Resize((height, width)).
//
// Scaling rows, and then columns, are products with constant matrices, so it is quick on GPUs, and
// differentiable.
func Resize(x *graph.Node, height, width int) *graph.Node {
	checkValues("Resize", x)
	if height < 1 || width < 1 {
		panic(fmt.Errorf("augment.Resize: the size must be at least 1x1, got %dx%d", height, width))
	}
	size := x.Shape().Dimensions
	y := widened(x)
	if size[1] != height {
		y = graph.Einsum("bhwc,yh->bywc", y, spans(y, height, size[1]))
	}
	if size[2] != width {
		y = graph.Einsum("bhwc,xw->bhxc", y, spans(y, width, size[2]))
	}
	return graph.ConvertDType(y, x.DType())
}

// spans returns a matrix that makes n rows, or columns, of old ones.
func spans(x *graph.Node, n, old int) *graph.Node {
	matrix := make([][]float32, n)
	for i, span := range scale.Spans(n, old) {
		matrix[i] = make([]float32, old)
		copy(matrix[i][span.First:], span.Weights)
	}
	return graph.ConstAsDType(x.Graph(), x.DType(), matrix)
}

// CenterCrop returns the middle of each image of x, [batch, height, width, channels] of any type,
// in this size, in training and elsewhere. It is data.CenterCrop in the graph, and torchvision's
// CenterCrop((height, width)), except that images must not be smaller.
func CenterCrop(x *graph.Node, height, width int) *graph.Node {
	checkImages("CenterCrop", x)
	size := x.Shape().Dimensions
	if height < 1 || width < 1 || height > size[1] || width > size[2] {
		panic(fmt.Errorf("augment.CenterCrop: the size must be from 1x1 to the %dx%d of the images, got %dx%d", size[1], size[2], height, width))
	}
	top, left := scale.Margin(height, size[1]), scale.Margin(width, size[2])
	return graph.Slice(x, graph.AxisRange(), graph.AxisRange(top, top+height), graph.AxisRange(left, left+width), graph.AxisRange())
}
