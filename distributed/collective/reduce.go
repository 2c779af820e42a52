package collective

import (
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// AllReduce returns the sum, mean, minimum or maximum of x over the ranks, element by element, with
// x's shape.
func (g Group) AllReduce(x *graph.Node, op Op) *graph.Node {
	g.checkReduced("all-reduce", x, op)
	if g.size == 1 || x.Shape().IsZeroSize() {
		return x
	}
	var y *graph.Node
	forward := func() *graph.Node {
		y = g.allReduce(x, op)
		return y
	}
	return differentiable(x, x.Shape(), forward, func(v *graph.Node) *graph.Node {
		if op == Sum || op == Mean {
			return g.AllReduce(v, op)
		}
		return g.toHolders(graph.Equal(x, y), g.AllReduce(v, Sum))
	})
}

func (g Group) allReduce(x *graph.Node, op Op) *graph.Node {
	switch {
	case isHalf(x):
		return g.allReduceHalf(x, op)
	case isBool(x):
		return asBool(g.lowered(op.reduction()).AllReduce(asBytes(x)))
	}
	return g.divided(g.lowered(op.reduction()).AllReduce(x), op)
}

// allReduceHalf combines values of half precision, which is what travels: each rank combines a part
// in float32, rounds it, and sends it to the others. So all ranks get the same bits.
func (g Group) allReduceHalf(x *graph.Node, op Op) *graph.Node {
	size, move := x.Shape().Size(), g.lowered(op.reduction())
	part := (size + g.size - 1) / g.size
	flat := graph.Reshape(x, size)
	if missing := part*g.size - size; missing > 0 {
		flat = graph.Concatenate([]*graph.Node{flat, graph.Zeros(x.Graph(), shapes.Make(x.DType(), missing))}, 0)
	}
	rows := graph.Reshape(move.AllToAll(flat), g.size, part)
	all := move.AllGather(g.combined(rows, op))
	return graph.Reshape(graph.Slice(all, graph.AxisRange(0, size)), x.Shape().Dimensions...)
}

// ReduceScatter combines x over the ranks as AllReduce does, and returns this rank's part of the
// result: x is cut along its first axis into equal parts, one for each rank of the group, in their
// order. Of x with the shape [6, 4], each of 2 ranks gets [3, 4].
func (g Group) ReduceScatter(x *graph.Node, op Op) *graph.Node {
	g.checkReduced("reduce-scatter", x, op)
	g.checkCut("reduce-scatter", x)
	if g.size == 1 {
		return x
	}
	shape := g.partOf(x.Shape())
	if shape.IsZeroSize() {
		return graph.Reshape(x, shape.Dimensions...)
	}
	var y *graph.Node
	forward := func() *graph.Node {
		y = g.reduceScatter(x, shape, op)
		return y
	}
	return differentiable(x, shape, forward, func(v *graph.Node) *graph.Node {
		whole := g.divided(g.AllGather(v), op)
		if op == Sum || op == Mean {
			return whole
		}
		return g.toHolders(graph.Equal(x, g.AllGather(y)), whole)
	})
}

func (g Group) reduceScatter(x *graph.Node, part shapes.Shape, op Op) *graph.Node {
	switch {
	case isHalf(x):
		rows := graph.Reshape(g.lowered(op.reduction()).AllToAll(x), slices.Concat([]int{g.size}, part.Dimensions)...)
		return g.combined(rows, op)
	case isBool(x):
		return asBool(g.lowered(op.reduction()).ReduceScatter(asBytes(x)))
	}
	return g.divided(g.lowered(op.reduction()).ReduceScatter(x), op)
}

// partOf returns the shape of a rank's part.
func (g Group) partOf(whole shapes.Shape) shapes.Shape {
	part := whole.Clone()
	part.Dimensions[0] /= g.size
	return part
}

// toHolders gives a gradient to the ranks that hold the extreme, in equal parts.
func (g Group) toHolders(holds, gradient *graph.Node) *graph.Node {
	mine := graph.ConvertDType(holds, gradient.DType())
	return graph.Where(holds, graph.Div(gradient, g.AllReduce(mine, Sum)), graph.ZerosLike(gradient))
}

// differentiable returns forward(), a function of x whose result has that shape, with a gradient
// with respect to x: gradient returns it from that of the result, v.
//
// GoMLX has custom gradients only for identities. But a result can have an alternative, which the
// backward pass follows instead. This one is a chain of such identities from x to a value of the
// result's shape, which no program computes, because nothing uses it. The backward pass reaches the
// end of the chain first, which keeps v for the beginning.
//
// If the result is in a block that is computed again in the backward pass, it is kept instead: a
// repeated collective would not be in the order of the others.
func differentiable(x *graph.Node, shape shapes.Shape, forward func() *graph.Node, gradient func(v *graph.Node) *graph.Node) *graph.Node {
	kept := func() *graph.Node { return forward().StopCheckpoint() }
	if !x.DType().IsFloat() {
		return kept()
	}
	var v *graph.Node
	alternative := func() []*graph.Node {
		begin := graph.IdentityWithCustomGradient(x, func(_, _ *graph.Node) *graph.Node { return gradient(v) })
		value := graph.BroadcastToShape(graph.ReduceAllSum(begin), shape)
		return []*graph.Node{graph.IdentityWithCustomGradient(value, func(_, arrived *graph.Node) *graph.Node {
			v = arrived
			return arrived
		})}
	}
	results, _ := graph.InternalFusedOpCallerMulti(func() []*graph.Node { return []*graph.Node{kept()} }, alternative, true)
	return results[0]
}
