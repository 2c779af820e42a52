package augment

import "github.com/gomlx/gomlx/core/graph"

// linear is a linear function of images that GoMLX can't differentiate, or only slowly.
type linear struct {
	forward func(x *graph.Node) *graph.Node
	// gradient returns the gradient of the loss with respect to x from that of the result.
	gradient func(v *graph.Node) *graph.Node
}

// of applies the function. GoMLX has custom gradients only for identities, so one wraps x, and one
// the result, whose gradient it keeps for the other. XLA removes the choice between the two values.
func (l linear) of(x *graph.Node) *graph.Node {
	var v *graph.Node
	tapped := graph.IdentityWithCustomGradient(x, func(_, _ *graph.Node) *graph.Node { return l.gradient(v) })
	never := graph.BroadcastToShape(graph.Const(x.Graph(), false), x.Shape())
	y := graph.Where(never, tapped, graph.StopGradient(l.forward(x)))
	return graph.IdentityWithCustomGradient(y, func(_, gradient *graph.Node) *graph.Node {
		v = gradient
		return gradient
	})
}
