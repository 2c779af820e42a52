package cnn

import "github.com/gomlx/gomlx/core/graph"

// operation is a function of nodes and a faster way to compute it.
type operation struct {
	// plain computes it as GoMLX would. It is what other platforms run, and it has the gradients
	// that are missing below.
	plain func(inputs []*graph.Node) *graph.Node
	// forward computes the same; nil is plain.
	forward func() *graph.Node
	// gradients returns, for each input, the gradient of the loss from that of the output, v. One
	// that is nil, or missing, is plain's own.
	gradients []func(v *graph.Node) *graph.Node
}

// of applies the operation. GoMLX has custom gradients for identities only, so each input and the
// output is one: the backward pass comes to the output first, which keeps v for the inputs. Of
// plain, XLA compiles no more than is used.
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
