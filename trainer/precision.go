package trainer

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// precision is the element type of a model's inputs, which GoMLX's layers take over for weights and computation.
type precision string

func (p precision) dtype() dtypes.DType {
	switch p {
	case "bf16-true":
		return dtypes.BFloat16
	case "64-true":
		return dtypes.Float64
	}
	return dtypes.Float32
}

func (p precision) inputs(nodes []*graph.Node) []*graph.Node { return convert(nodes, p.dtype()) }

// outputs are never of less than single precision: losses and metrics add many values up.
func (p precision) outputs(nodes []*graph.Node) []*graph.Node {
	if p.dtype() == dtypes.BFloat16 {
		return convert(nodes, dtypes.Float32)
	}
	return nodes
}

// labelsFor are labels that can be compared with the predictions: floating-point ones of a type that no prediction has get the first one's.
func labelsFor(predictions, labels []*graph.Node) []*graph.Node {
	dtype := predictions[0].DType()
	if !dtype.IsFloat() {
		return labels
	}
	fitting := make([]*graph.Node, len(labels))
	for i, label := range labels {
		fitting[i] = label
		if !slices.ContainsFunc(predictions, func(p *graph.Node) bool { return p.DType() == label.DType() }) {
			fitting[i] = convert(labels[i:i+1], dtype)[0]
		}
	}
	return fitting
}

// convert changes the floating-point nodes.
func convert(nodes []*graph.Node, dtype dtypes.DType) []*graph.Node {
	converted := make([]*graph.Node, len(nodes))
	for i, node := range nodes {
		converted[i] = node
		if node.DType().IsFloat() && node.DType() != dtype {
			converted[i] = graph.ConvertDType(node, dtype)
		}
	}
	return converted
}
