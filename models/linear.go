package models

import (
	"slices"

	"github.com/gomlx/gomlx/core/graph"
)

// linear is a linear function of x whose gradient GoMLX would compute slowly: that of a slice, for
// example, pads it with zeros, and the gradients of several slices are then added up.
type linear struct {
	forward func(x *graph.Node) []*graph.Node
	// gradient returns the gradient of the loss with respect to x from those of the results.
	gradient func(v []*graph.Node) *graph.Node
}

// of applies the function. GoMLX has custom gradients only for identities, so one wraps x, and one
// each result, whose gradient it keeps for the other.
func (l linear) of(x *graph.Node) []*graph.Node {
	var v, zeros []*graph.Node
	results := l.forward(graph.IdentityWithCustomGradient(x, func(_, _ *graph.Node) *graph.Node {
		arrived := slices.Clone(v)
		copy(v, zeros) // For another loss.
		return l.gradient(arrived)
	}))
	for i, result := range results {
		zeros = append(zeros, graph.ZerosLike(result)) // In case the loss doesn't depend on it.
		v = append(v, zeros[i])
		results[i] = graph.IdentityWithCustomGradient(result, func(_, gradient *graph.Node) *graph.Node {
			v[i] = gradient
			return gradient
		})
	}
	return results
}

// parts divides x, [batch, n, parts, heads, size], into its parts, each [batch, heads, n, size].
func parts(x *graph.Node) []*graph.Node {
	return linear{
		forward: func(x *graph.Node) (all []*graph.Node) {
			for i := range x.Shape().Dimensions[2] {
				part := graph.Squeeze(graph.Slice(x, graph.AxisRange(), graph.AxisRange(), graph.AxisElem(i)), 2)
				all = append(all, graph.TransposeAllAxes(part, 0, 2, 1, 3))
			}
			return all
		},
		gradient: func(v []*graph.Node) *graph.Node {
			var all []*graph.Node
			for _, part := range v {
				all = append(all, graph.InsertAxes(graph.TransposeAllAxes(part, 0, 2, 1, 3), 2))
			}
			return graph.Concatenate(all, 2)
		},
	}.of(x)
}
