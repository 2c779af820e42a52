package collective

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed/pjrt"
)

// Broadcast returns the root's x on every rank. The root is a place in the group: in that of all
// ranks, it is a rank.
func (g Group) Broadcast(x *graph.Node, root int) *graph.Node {
	g.check("broadcast", x)
	g.checkRoot(x, root)
	forward := func(x *graph.Node) *graph.Node { return g.lowered(pjrt.Sum).Broadcast(x, root) }
	return g.moved(x, x.Shape(), forward, func(v *graph.Node) *graph.Node {
		isRoot := graph.Equal(g.Index(v.Graph()), graph.Const(v.Graph(), int32(root)))
		return graph.Where(graph.BroadcastToShape(isRoot, v.Shape()), g.AllReduce(v, Sum), graph.ZerosLike(v))
	})
}

// AllGather returns the values of x of the group's ranks, in their order, one after the other along
// the first axis: of x with the shape [3, 4], 2 ranks gather [6, 4]. Of scalars, it returns a
// vector.
func (g Group) AllGather(x *graph.Node) *graph.Node {
	g.check("all-gather", x)
	if x.Rank() == 0 {
		return g.AllGather(graph.Reshape(x, 1))
	}
	shape := x.Shape().Clone()
	shape.Dimensions[0] *= g.size
	return g.moved(x, shape, g.lowered(pjrt.Sum).AllGather, func(v *graph.Node) *graph.Node { return g.ReduceScatter(v, Sum) })
}

// AllToAll cuts x along its first axis into equal parts, one for each rank of the group, in their
// order, and returns the parts that the ranks have for this one, in their order, with x's shape. So
// twice all-to-all is x again.
func (g Group) AllToAll(x *graph.Node) *graph.Node {
	g.check("all-to-all", x)
	g.checkCut("all-to-all", x)
	return g.moved(x, x.Shape(), g.lowered(pjrt.Sum).AllToAll, g.AllToAll)
}

// moved returns the result of a collective that only moves values, which has that shape.
func (g Group) moved(x *graph.Node, shape shapes.Shape, forward, gradient func(*graph.Node) *graph.Node) *graph.Node {
	if g.size == 1 {
		return x
	}
	if shape.IsZeroSize() {
		return graph.Reshape(x, shape.Dimensions...)
	}
	return differentiable(x, shape, func() *graph.Node {
		if isBool(x) {
			return asBool(forward(asBytes(x)))
		}
		return forward(x)
	}, gradient)
}

// Bools travel as bytes.
func isBool(x *graph.Node) bool         { return x.DType() == dtypes.Bool }
func asBytes(x *graph.Node) *graph.Node { return graph.ConvertDType(x, dtypes.Uint8) }
func asBool(x *graph.Node) *graph.Node  { return graph.ConvertDType(x, dtypes.Bool) }

func isHalf(x *graph.Node) bool { return x.DType().IsHalfPrecision() }
