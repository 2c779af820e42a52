package cnn

import (
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/xslices"
	"github.com/gomlx/gomlx/core/graph"
)

// channelSum returns the sum of x over all axes but the last, which has the channels. On a CPU it
// multiplies the pixels of each image by ones, as a matrix product, and then adds up the images.
// XLA compiles the products to vector instructions. A reduction over the pixels takes up to ten
// times as long, because XLA fuses the computation of its input into a loop that jumps from pixel
// to pixel. (A GPU may round the factors of a product, and reduces fast.)
func channelSum(x *graph.Node) *graph.Node {
	if x.Rank() < 3 || !fast(x) {
		return graph.ReduceSum(x, xslices.Iota(0, x.Rank()-1)...)
	}
	images, channels := x.Shape().Dimensions[0], lastDimension(x)
	pixels := x.Shape().Size() / (images * channels)
	ones := graph.Ones(x.Graph(), shapes.Make(x.DType(), images, 1, pixels))
	sums := graph.DotGeneral(ones, []int{2}, []int{0}, graph.Reshape(x, images, pixels, channels), []int{1}, []int{0})
	return graph.ReduceSum(graph.Reshape(sums, images, channels), 0)
}

func lastDimension(x *graph.Node) int { return x.Shape().Dimensions[x.Rank()-1] }
