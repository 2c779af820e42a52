package augment

import (
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/internal/forecast"
)

// draws are random numbers for each example, [batch, n] float32, at least 0 and less than 1. They
// have float32 for images of any type: bfloat16 would round some of them to 1.
type draws struct{ all *graph.Node }

// draw draws n numbers for each example of x.
func draw(scope *model.Scope, x *graph.Node, n int) draws {
	return draws{apart(scope.RandomUniform(x.Graph(), shapes.Make(dtypes.Float32, x.Shape().Dimensions[0], n)))}
}

// number returns number i of each example, [batch].
func (d draws) number(i int) *graph.Node {
	return graph.Reshape(graph.Slice(d.all, graph.AxisRange(), graph.AxisElem(i)), d.all.Shape().Dimensions[0])
}

// below returns number i of each example as an integer from 0 to n-1, [batch] int32. The product is
// rounded to n for none of the numbers.
func (d draws) below(i, n int) *graph.Node {
	return graph.ConvertDType(graph.Floor(graph.MulScalar(d.number(i), float64(n))), dtypes.Int32)
}

// apart returns x, [n, m] float32, so that XLA computes it once. On a CPU, XLA fuses the rounds of
// the generator into the loop over the pixels, and then computes them for each pixel again, which
// takes fifty times as long as the augmentation. (Programs for one device have the generator of
// package pjrt, which isn't fused.) XLA fuses no matrix product into a loop, and removes an
// optimization barrier before it fuses. On a CPU, a product with ones and zeros is exact.
func apart(x *graph.Node) *graph.Node {
	if !onCPU(x.Graph()) {
		return x
	}
	n := x.Shape().Dimensions[1]
	if n == 1 { // XLA computes a product over one number as a multiplication, which it fuses.
		x = graph.Concatenate([]*graph.Node{x, x}, 1)
	}
	ones := graph.DiagonalWithValue(graph.ScalarOne(x.Graph(), x.DType()), x.Shape().Dimensions[1])
	return graph.Slice(graph.Dot(x, ones).Product(), graph.AxisRange(), graph.AxisRange(0, n))
}

// onCPU reports whether XLA computes g on a CPU. A forecast builds a GPU's graph.
func onCPU(g *graph.Graph) bool {
	return !forecast.ForGPU.Load() && strings.Contains(strings.ToLower(g.Backend().DeviceDescription(0)), "cpu")
}
