package augment

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// RandomResizedCrop cuts a random part out of each image of x, [batch, height, width, channels] of
// a floating-point type, and scales it to the size of the image, in training. The part has from
// smallest, which is more than 0, to all of the area, and the image's proportions changed by a
// factor from 3/4 to 4/3 (Szegedy et al., Going Deeper with Convolutions, 2014,
// https://arxiv.org/abs/1409.4842). 0.08 is usual for photos. It computes in at least float32, and
// rounds once.
//
// It is data.RandomResizedCrop in the graph, and torchvision's RandomResizedCrop without a change
// of size.
func RandomResizedCrop(scope *model.Scope, x *graph.Node, smallest float64) *graph.Node {
	checkValues("RandomResizedCrop", x)
	if !(smallest > 0 && smallest <= 1) {
		panic(fmt.Errorf("augment.RandomResizedCrop: the smallest part must be more than 0 and at most 1, got %g", smallest))
	}
	if smallest == 1 || !scope.IsTraining(x.Graph()) {
		return x
	}
	d := draw(scope, x, 4)
	rows, columns := part(d, smallest)
	y := widened(x)
	y = places(rows, y.Shape().Dimensions[1]).rows(y)
	y = places(columns, y.Shape().Dimensions[2]).columns(y)
	return graph.ConvertDType(y, x.DType())
}

// span is a part of the rows, or of the columns, as fractions of all, [batch].
type span struct{ begin, size *graph.Node }

// part draws the part of each image. A part whose proportions changed more would not fit.
func part(d draws, smallest float64) (rows, columns span) {
	area := graph.AddScalar(graph.MulScalar(d.number(0), 1-smallest), smallest)
	most := graph.MulScalar(graph.MinScalar(graph.Neg(graph.Log(area)), math.Log(4.0/3)), 0.5)
	stretch := graph.Exp(graph.Mul(graph.AddScalar(graph.MulScalar(d.number(1), 2), -1), most))
	side := graph.Sqrt(area)
	height := graph.MinScalar(graph.Mul(side, stretch), 1)
	width := graph.MinScalar(graph.Div(side, stretch), 1)
	return span{graph.Mul(d.number(2), graph.OneMinus(height)), height}, span{graph.Mul(d.number(3), graph.OneMinus(width)), width}
}

// between says which two rows or columns each new one lies between, [batch, n] int32, and how near
// to the second, [batch, n] float32.
type between struct{ first, second, share *graph.Node }

// places maps n rows, or columns, to a part of them.
func places(s span, n int) between {
	g, batch := s.size.Graph(), s.size.Shape().Dimensions[0]
	middle := graph.AddScalar(graph.Iota(g, shapes.Make(dtypes.Float32, batch, n), 1), 0.5)
	each := func(perImage *graph.Node) *graph.Node { return graph.InsertAxes(perImage, -1) }
	at := graph.Add(graph.Mul(middle, each(s.size)), graph.MulScalar(each(s.begin), float64(n)))
	at = graph.ClipScalar(graph.AddScalar(at, -0.5), 0, float64(n-1))
	first := graph.Floor(at)
	second := graph.MinScalar(graph.AddScalar(first, 1), float64(n-1))
	return between{graph.ConvertDType(first, dtypes.Int32), graph.ConvertDType(second, dtypes.Int32), graph.Sub(at, first)}
}

// rows interpolates between the rows of x.
func (b between) rows(x *graph.Node) *graph.Node {
	size := x.Shape().Dimensions
	flat := graph.Reshape(x, size[0]*size[1], size[2], size[3])
	image := graph.MulScalar(graph.Iota(x.Graph(), b.first.Shape(), 0), size[1])
	at := func(rows *graph.Node) *graph.Node {
		return graph.Reshape(graph.Gather(flat, graph.Reshape(graph.Add(rows, image), -1, 1)), size...)
	}
	return b.blend(at, graph.Reshape(b.share, size[0], size[1], 1, 1))
}

// columns interpolates between the columns of x.
func (b between) columns(x *graph.Node) *graph.Node {
	size := x.Shape().Dimensions
	flat := graph.Reshape(x, size[0]*size[1]*size[2], size[3])
	row := graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, size[0]*size[1], size[2]), 0)
	row = graph.MulScalar(graph.Reshape(row, size[:3]...), size[2])
	at := func(columns *graph.Node) *graph.Node {
		return graph.Reshape(graph.Gather(flat, graph.Reshape(graph.Add(row, graph.InsertAxes(columns, 1)), -1, 1)), size...)
	}
	return b.blend(at, graph.Reshape(b.share, size[0], 1, size[2], 1))
}

// blend interpolates between what at returns for the first and the second.
func (b between) blend(at func(*graph.Node) *graph.Node, share *graph.Node) *graph.Node {
	first := at(b.first)
	return graph.Add(first, graph.Mul(graph.ConvertDType(share, first.DType()), graph.Sub(at(b.second), first)))
}
