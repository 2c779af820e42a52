package step

import (
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train"
)

// sayDoubts warns once of what is most likely a mistake in a model, because it computes what nobody
// would want. A task with a step of its own has no outputs that are known.
func (s *Step) sayDoubts(g *graph.Graph, inputs, outputs []*graph.Node) {
	if !s.once("doubts") {
		return
	}
	if len(inputs) > 0 && len(outputs) > 0 && train.GetMainLoss(g) == nil && !dependOn(outputs, inputs) {
		s.Printf("warning: the model's output does not depend on its inputs, so it is the same for all examples: does its function use them?\n")
	}
	if s.Train.copied {
		s.Printf("warning: the labels are the inputs: a model that is to predict the next token needs labels that are one token ahead\n")
	}
	for _, n := range g.Nodes() {
		logits, name := twice(n)
		if name != "" && (len(outputs) == 0 || slices.ContainsFunc(outputs, func(o *graph.Node) bool { return sourceOf(o) == logits })) {
			s.Printf("warning: the model ends in a %s, and its loss computes another one: leave out the model's, because the loss takes logits\n", name)
			return
		}
	}
}

// twice returns the logits and the name of the function of a loss that a node computes of them, if
// they are its results already.
func twice(n *graph.Node) (logits *graph.Node, name string) {
	operand := func(n *graph.Node, kind graph.NodeType) *graph.Node {
		if n == nil || n.Type() != kind {
			return nil
		}
		return sourceOf(n.Inputs()[0])
	}
	// As in LogSoftmax, perhaps of what a mask leaves.
	sum := operand(n, graph.NodeTypeLog)
	logits = operand(operand(operand(sum, graph.NodeTypeReduceSum), graph.NodeTypeExp), graph.NodeTypeSub)
	if logits != nil && logits.Type() == graph.NodeTypeWhere {
		logits = sourceOf(logits.Inputs()[1])
	}
	if powers := operand(logits, graph.NodeTypeDiv); powers != nil && powers.Type() == graph.NodeTypeExp {
		all := sourceOf(logits.Inputs()[1])
		if all.Type() == graph.NodeTypeReduceSum && all.Shape().EqualDimensions(sum.Shape()) { // Over the same axes.
			return logits, "softmax"
		}
	}
	// As in BinaryCrossentropyLogits.
	logits = operand(operand(operand(operand(n, graph.NodeTypeLog1p), graph.NodeTypeExp), graph.NodeTypeNeg), graph.NodeTypeAbs)
	if logits != nil && logits.Type() == graph.NodeTypeLogistic {
		return logits, "sigmoid"
	}
	return nil, ""
}

// dependOn reports whether one of the nodes depends on one of the sources, or may do so, or is
// random.
func dependOn(nodes, sources []*graph.Node) bool {
	visited := map[*graph.Node]bool{}
	var depends func(n *graph.Node) bool
	depends = func(n *graph.Node) bool {
		switch n.Type() {
		case graph.NodeTypeRNGBitGenerator, graph.NodeTypeCall, graph.NodeTypeWhile, graph.NodeTypeIf: // Functions may use what isn't an input.
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

// copies reports whether labels of a batch that are the classes of its tokens are also the tokens
// that the model looks up. A model or a loss that shifts them looks up others, or uses a slice.
func copies(known []bound, inputs, labels []*tensors.Tensor) bool {
	at := func(b bound, of []*tensors.Tensor) *tensors.Tensor {
		if b.at < len(of) {
			return of[b.at]
		}
		return nil
	}
	for _, class := range known {
		label := at(class, labels)
		if !class.label || label == nil || label.Rank() < 2 || label.Shape().Dimensions[1] < 3 {
			continue
		}
		for _, row := range known {
			if input := at(row, inputs); !row.label && input != nil && input.Equal(label) {
				return true
			}
		}
	}
	return false
}
