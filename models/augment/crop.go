package augment

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// RandomCrop pads each image of x, [batch, height, width, channels] of any type, with this many
// zeros on each side, which are black if Normalize comes later, and crops an image of the original
// size at a random place, in training (He et al., Deep Residual Learning for Image Recognition,
// 2015, section 4.2, https://arxiv.org/abs/1512.03385). It is data.RandomCrop in the graph, and
// torchvision's RandomCrop(size, padding) for the size that images have anyway.
func RandomCrop(scope *model.Scope, x *graph.Node, padding int) *graph.Node {
	checkImages("RandomCrop", x)
	if padding < 0 {
		panic(fmt.Errorf("augment.RandomCrop: the padding can't be negative, got %d", padding))
	}
	if padding > maxPadding {
		panic(fmt.Errorf("augment.RandomCrop: the padding must be at most %d, got %d: with more than the size of the images, most of them are black", maxPadding, padding))
	}
	if padding == 0 || !scope.IsTraining(x.Graph()) {
		return x
	}
	places := 2*padding + 1
	d := draw(scope, x, 2)
	return crop{padding, d.below(0, places), d.below(1, places)}.of(x)
}

// maxPadding keeps the size of padded images so small that XLA, which ends the process if it
// overflows, can compute it.
const maxPadding = 1 << 16

// crop moves each image down and to the right. The distances are those numbers less the padding.
type crop struct {
	padding     int
	down, right *graph.Node // [batch] int32, from 0 to twice the padding.
}

// of moves the images of x. Pixels that move out of an image have no gradient; the others bring
// theirs back.
func (c crop) of(x *graph.Node) *graph.Node {
	return linear{forward: c.move, gradient: func(v *graph.Node) *graph.Node { return c.back().of(v) }}.of(x)
}

// back is the crop that moves images back.
func (c crop) back() crop {
	return crop{c.padding, c.fromEnd(c.down), c.fromEnd(c.right)}
}

func (c crop) fromEnd(distance *graph.Node) *graph.Node {
	return graph.AddScalar(graph.Neg(distance), 2*c.padding)
}

// move is one gather of a slice for each image, which XLA compiles to a loop over rows for CPUs, as
// fast as a copy. Gathers of pixels, products with one-hot matrices and selections among all shifts
// take 3 to 70 times as long.
func (c crop) move(x *graph.Node) *graph.Node {
	size := x.Shape().Dimensions
	around := compute.PadAxis{Start: c.padding, End: c.padding}
	padded := graph.Pad(x, graph.ScalarZero(x.Graph(), x.DType()), compute.PadAxis{}, around, around, compute.PadAxis{})
	image := graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, size[0]), 0)
	starts := graph.Stack([]*graph.Node{image, c.fromEnd(c.down), c.fromEnd(c.right)}, 1)
	return graph.Reshape(graph.GatherSlices(padded, []int{0, 1, 2}, starts, []int{1, size[1], size[2]}, true), size...)
}
