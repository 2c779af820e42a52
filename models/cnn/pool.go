package cnn

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
)

// MaxPool2x2 returns the maximum of each 2x2 window of x, [batch, height, width, channels]. The
// result equals that of graph.MaxPool(x).Window(2).Done(); the last row or column of an odd size is
// left out. It uses a reshape and a reduction, whose gradient is far faster on a CPU than that of a
// window.
//
// If several pixels of a window are the maximum, they share its gradient equally. graph.MaxPool
// gives it to one of them.
func MaxPool2x2(x *graph.Node) *graph.Node {
	if x.Rank() != 4 {
		panic(fmt.Errorf("cnn.MaxPool2x2: x has shape %s; it must be [batch, height, width, channels]", x.Shape()))
	}
	size := x.Shape().Dimensions
	batch, height, width, channels := size[0], size[1]/2, size[2]/2, size[3]
	if height == 0 || width == 0 {
		panic(fmt.Errorf("cnn.MaxPool2x2: x has shape %s; height and width must be at least 2", x.Shape()))
	}
	if size[1]%2 != 0 || size[2]%2 != 0 {
		x = graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, 2*height), graph.AxisRange(0, 2*width), graph.AxisRange())
	}
	windows := graph.Reshape(x, batch, height, 2, width, 2, channels)
	return operation{
		plain: func(in []*graph.Node) *graph.Node { return graph.ReduceMax(in[0], rowAxis, columnAxis) },
		gradients: []func(v *graph.Node) *graph.Node{
			func(v *graph.Node) *graph.Node { return shareTies(windows, v) },
		},
	}.of(windows)
}

// The axes of an image cut into 2x2 windows: [batch, height/2, rowAxis, width/2, columnAxis,
// channels].
const (
	rowAxis    = 2
	columnAxis = 4
)

// shareTies divides the gradient of each window equally among its largest pixels. ReduceMax's own
// gradient gives each of them the whole, so a constant background would count four times.
//
// It works pixel by pixel, because XLA compiles that into one loop over the channels. Reductions
// took twice the time.
func shareTies(windows, v *graph.Node) *graph.Node {
	pixel := func(row, column int) *graph.Node {
		return graph.Slice(windows, graph.AxisRange(), graph.AxisRange(), graph.AxisElem(row), graph.AxisRange(), graph.AxisElem(column), graph.AxisRange())
	}
	a, b, c, d := pixel(0, 0), pixel(0, 1), pixel(1, 0), pixel(1, 1)
	top := graph.Max(graph.Max(a, b), graph.Max(c, d))
	one := func(p *graph.Node) *graph.Node { return graph.ConvertDType(graph.Equal(p, top), v.DType()) }
	ties := graph.Add(graph.Add(one(a), one(b)), graph.Add(one(c), one(d)))
	share := graph.Div(graph.Reshape(v, top.Shape().Dimensions...), ties)
	return graph.Where(graph.Equal(windows, graph.BroadcastToShape(top, windows.Shape())), graph.BroadcastToShape(share, windows.Shape()), graph.ZerosLike(windows))
}
