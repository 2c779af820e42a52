package collective

import (
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

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
