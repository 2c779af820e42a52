package trainer

import (
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// sayDoubts warns once of what is most likely a mistake in a model, because it computes what nobody
// would want. The inputs are nil if the model's output may depend on something else.
func (s *stepper) sayDoubts(g *graph.Graph, inputs, predictions []*graph.Node) {
	if s.doubted {
		return
	}
	s.doubted = true
	if len(inputs) > 0 && !dependOn(predictions, inputs) {
		s.printf("warning: the model's output does not depend on its inputs, so it is the same for all examples: does its function use them?\n")
	}
	if s.trainBounds.copied {
		s.printf("warning: the labels are the inputs: a model that is to predict the next token needs labels that are one token ahead\n")
	}
	for _, n := range g.Nodes() {
		if name := twice(n); name != "" {
			s.printf("warning: the model ends in a %s, and its loss computes another one: leave out the model's, because the loss takes logits\n", name)
			return
		}
	}
}

// twice returns the name of the function of a loss that a node computes of logits, if these are its
// results already.
func twice(n *graph.Node) string {
	operand := func(n *graph.Node, kind graph.NodeType) *graph.Node {
		if n == nil || n.Type() != kind {
			return nil
		}
		return sourceOf(n.Inputs()[0])
	}
	// As in LogSoftmax.
	logits := operand(operand(operand(operand(n, graph.NodeTypeLog), graph.NodeTypeReduceSum), graph.NodeTypeExp), graph.NodeTypeSub)
	if powers := operand(logits, graph.NodeTypeDiv); powers != nil && powers.Type() == graph.NodeTypeExp && sourceOf(logits.Inputs()[1]).Type() == graph.NodeTypeReduceSum {
		return "softmax"
	}
	// As in BinaryCrossentropyLogits.
	logits = operand(operand(operand(operand(n, graph.NodeTypeLog1p), graph.NodeTypeExp), graph.NodeTypeNeg), graph.NodeTypeAbs)
	if logits != nil && logits.Type() == graph.NodeTypeLogistic {
		return "sigmoid"
	}
	return ""
}

// dependOn reports whether one of the nodes depends on one of the sources, as far as can be seen.
func dependOn(nodes, sources []*graph.Node) bool {
	visited := map[*graph.Node]bool{}
	var depends func(n *graph.Node) bool
	depends = func(n *graph.Node) bool {
		switch n.Type() {
		case graph.NodeTypeCall, graph.NodeTypeWhile, graph.NodeTypeIf: // Functions may use what isn't an input.
			return true
		}
		if visited[n] {
			return false
		}
		visited[n] = true
		return slices.Contains(sources, n) || slices.ContainsFunc(n.Inputs(), depends)
	}
	return slices.ContainsFunc(nodes, depends)
}

// copies reports whether labels of a batch that are the classes of its tokens are its inputs too. A
// loss that shifts them itself uses a slice of them.
func copies(known []bound, inputs, labels []*tensors.Tensor) bool {
	return slices.ContainsFunc(known, func(b bound) bool {
		if !b.label || b.at >= len(labels) || labels[b.at] == nil {
			return false
		}
		d := labels[b.at].Shape().Dimensions
		return len(d) > 1 && d[1] > 2 && slices.ContainsFunc(inputs, func(input *tensors.Tensor) bool { return input != nil && input.Equal(labels[b.at]) })
	})
}
