package cnn

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/models/modelstest"
)

func TestRaceSum(t *testing.T) {
	for _, s := range [][2]int{{64 * 14 * 14, 32}, {32 * 1024, 64}, {32 * 256, 128}, {32 * 64, 256}, {32 * 16, 512}} {
		rows, c := s[0], s[1]
		in := []any{modelstest.Noise(1, rows, c)}
		one := func(f func(x *graph.Node) *graph.Node) func(in []*graph.Node) []*graph.Node {
			return func(in []*graph.Node) []*graph.Node { return []*graph.Node{f(in[0])} }
		}
		ones := func(x *graph.Node, size ...int) *graph.Node { return graph.Ones(x.Graph(), shapes.Make(x.DType(), size...)) }
		race(t, fmt.Sprintf("sum %v", s), 0, in,
			variant{"plain", one(func(x *graph.Node) *graph.Node { return graph.ReduceSum(x, 0) })},
			variant{"dot", one(channelSum)},
			variant{"dot2", one(func(x *graph.Node) *graph.Node {
				return graph.Slice(graph.Dot(ones(x, 2, rows), x).Product(), graph.AxisElem(0))
			})},
			variant{"dot8", one(func(x *graph.Node) *graph.Node {
				return graph.Slice(graph.Dot(ones(x, 8, rows), x).Product(), graph.AxisElem(0))
			})},
			variant{"T", one(func(x *graph.Node) *graph.Node {
				return graph.DotGeneral(x, []int{0}, nil, ones(x, rows), []int{0}, nil)
			})},
			variant{"two", one(func(x *graph.Node) *graph.Node {
				return graph.ReduceSum(graph.ReduceSum(graph.Reshape(x, 32, rows/32, c), 1), 0)
			})},
			variant{"batch", one(func(x *graph.Node) *graph.Node {
				y := graph.Reshape(x, 16, rows/16, c)
				d := graph.DotGeneral(ones(x, 16, 1, rows/16), []int{2}, []int{0}, y, []int{1}, []int{0})
				return graph.ReduceSum(graph.Reshape(d, 16, c), 0)
			})},
			variant{"halves", one(func(x *graph.Node) *graph.Node {
				return graph.ReduceSum(graph.Reshape(graph.Dot(ones(x, 1, rows/8), graph.Reshape(x, rows/8, 8*c)).Product(), 8, c), 0)
			})},
		)
	}
}
