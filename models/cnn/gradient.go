package cnn

import "github.com/gomlx/gomlx/core/graph"

// operation is a function of nodes, with a faster way to compute it.
type operation struct {
	// plain computes the operation with GoMLX's functions. Other platforms run it, and it provides
	// the gradients that are missing below.
	plain func(inputs []*graph.Node) *graph.Node
	// forward computes the same, faster. If it is nil, plain is used.
	forward func() *graph.Node
	// gradients returns, for each input, the gradient of the loss from that of the output, v. If
	// one is nil or missing, plain's gradient is used.
	gradients []func(v *graph.Node) *graph.Node
}

// of applies the operation. GoMLX has custom gradients only for identities, so it wraps each input
// and the output in one. The backward pass reaches the output first, which keeps v for the inputs.
// XLA compiles only the parts of plain that are used.
func (o operation) of(inputs ...*graph.Node) *graph.Node {
	var v *graph.Node
	tapped := make([]*graph.Node, len(inputs))
	for i, input := range inputs {
		tapped[i] = input
		if i < len(o.gradients) && o.gradients[i] != nil {
			tapped[i] = graph.IdentityWithCustomGradient(input, func(_, _ *graph.Node) *graph.Node { return o.gradients[i](v) })
		}
	}
	y := o.plain(tapped)
	if o.forward != nil {
		never := graph.BroadcastToShape(graph.Const(y.Graph(), false), y.Shape())
		y = graph.IdentityWithCustomGradient(y, func(_, _ *graph.Node) *graph.Node { return v })
		y = graph.Where(never, y, graph.StopGradient(o.forward()))
	}
	return graph.IdentityWithCustomGradient(y, func(_, gradient *graph.Node) *graph.Node {
		v = gradient
		return gradient
	})
}
