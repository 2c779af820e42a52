package step

import (
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/support/xslices"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/internal/layerhooks"
)

// Precision selects the element types of a model: that of its inputs, in which GoMLX's layers also
// compute, and that of its weights.
type Precision string

const (
	bf16Mixed Precision = "bf16-mixed"
	f16Mixed  Precision = "16-mixed"
)

// Precisions are the names that Config.Precision accepts.
var Precisions = []string{"32-true", string(bf16Mixed), string(f16Mixed), "bf16-true", "64-true"}

// dtype returns the type in which the model computes.
func (p Precision) dtype() dtypes.DType {
	switch p {
	case "bf16-true", bf16Mixed:
		return dtypes.BFloat16
	case f16Mixed:
		return dtypes.Float16
	case "64-true":
		return dtypes.Float64
	}
	return dtypes.Float32
}

// Weights returns the type of the weights.
func (p Precision) Weights() dtypes.DType {
	if strings.HasSuffix(string(p), "-mixed") {
		return dtypes.Float32
	}
	return p.dtype()
}

// types returns both types.
func (p Precision) types() layerhooks.Precision {
	return layerhooks.Precision{Compute: p.dtype(), Weights: p.Weights()}
}

func (p Precision) inputs(nodes []*graph.Node) []*graph.Node { return convert(nodes, p.dtype()) }

// outputs converts half precision to single precision, because losses and metrics sum many values.
func (p Precision) outputs(nodes []*graph.Node) []*graph.Node {
	if p.dtype().IsHalfPrecision() {
		return convert(nodes, dtypes.Float32)
	}
	return nodes
}

// labelsFor converts labels so that they can be compared with the predictions: if no prediction has
// the type of a floating-point label, the label gets the type of the first prediction.
func labelsFor(predictions, labels []*graph.Node) []*graph.Node {
	if len(predictions) == 0 || !predictions[0].DType().IsFloat() {
		return labels
	}
	return xslices.Map(labels, func(label *graph.Node) *graph.Node {
		if slices.ContainsFunc(predictions, func(p *graph.Node) bool { return p.DType() == label.DType() }) {
			return label
		}
		return convert([]*graph.Node{label}, predictions[0].DType())[0]
	})
}

// countable converts a step's first input so that metrics can use it. GoMLX's means count examples
// in its type: an integer type doesn't match the values, and half precision can't hold the count.
func countable(inputs []*graph.Node) []*graph.Node {
	if dtype := inputs[0].DType(); dtype.IsFloat() && !dtype.IsHalfPrecision() {
		return inputs
	}
	return append([]*graph.Node{graph.ConvertDType(inputs[0], dtypes.Float32)}, inputs[1:]...)
}

// convert converts the floating-point nodes to a type.
func convert(nodes []*graph.Node, dtype dtypes.DType) []*graph.Node {
	return xslices.Map(nodes, func(node *graph.Node) *graph.Node {
		if node.DType().IsFloat() && node.DType() != dtype {
			return graph.ConvertDType(node, dtype)
		}
		return node
	})
}
