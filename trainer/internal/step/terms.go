package step

import (
	"fmt"
	"math"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/support/exceptions"

	"gonbatch/internal/layerhooks"
)

// termKeys are where layers keep the terms that they add to the loss, such as L2 regularization.
var termKeys = []string{train.TrainerMainLossGraphParamKey, train.TrainerRegularizationLossGraphParamKey}

// changeTerms replaces the terms that layers have added to the loss.
func changeTerms(g *graph.Graph, change func(term *graph.Node) *graph.Node) {
	for _, key := range termKeys {
		name := model.JoinPath(train.TrainerAbsoluteScope, key)
		if term, ok := model.GetGraphParam(g, name); ok {
			model.SetGraphParam(g, name, change(term.(*graph.Node)))
		}
	}
}

// termBuilder builds terms of the loss again, in single precision. A layer computes its term from
// weights of half precision: in float16 a sum of squares overflows, a small factor is 0, and so is
// or overflows the gradient. From the weights in single precision, the term is that of 32-true.
//
// What depends on the batch is computed as PyTorch's autocast does: sums and what is summed in
// single precision, layers in half.
type termBuilder struct {
	narrow  dtypes.DType
	wide    map[*graph.Node]*graph.Node // Weights of half precision, and others that are built already.
	changed map[*graph.Node]bool        // Weights that the model has changed: their gradients are asked for as they are.
	weights map[*graph.Node]bool        // Whether a node depends only on weights and constants.
	scalars map[*graph.Node]float64     // Constants of half precision, as the layer gave them.
	rounded func(to float64)            // Called for a constant that isn't among these.
}

// newTermBuilder returns a builder for the graph with the casts of its model, which f builds.
func (s *draft) newTermBuilder(casts []*cast, inputs, labels []*graph.Node, f BuildFn, given map[string]*model.Variable) *termBuilder {
	constants, failure := s.constants(inputs, labels, f, given)
	b := &termBuilder{narrow: s.Precision.dtype(), wide: map[*graph.Node]*graph.Node{}, changed: map[*graph.Node]bool{}, weights: map[*graph.Node]bool{}, scalars: constants}
	b.rounded = func(to float64) {
		if !s.once("constants") {
			return
		}
		why := "the model names this type, or has other constants for it: let it use trainer.ComputeDType, and the same constants in all types"
		if failure != nil {
			why = fmt.Sprintf("the model can't be built in %s, from which they are taken: %v", dtypes.Float64, failure)
		}
		s.Printf("warning: precision %s: constants of what layers add to the loss, such as the factor of a regularization, may be rounded to %s, one of them to %g, because %s\n",
			s.Precision, s.Precision.dtype(), to, why)
	}
	for _, c := range casts {
		if c.wide == nil {
			continue
		}
		if value := c.variable.NodeValue(s.graph); value == c.narrowed {
			b.wide[c.narrowed] = c.wide
		} else {
			b.changed[value] = true
		}
	}
	return b
}

// isRounded reports whether a node is a constant of half precision that may have been another
// number before. Those of at most 3 bits are most likely meant, unless they are so small that
// float16 has no more bits for them.
func (b *termBuilder) isRounded(n *graph.Node) bool {
	if n.Type() != graph.NodeTypeConstant || !n.IsScalar() || n.DType() != b.narrow {
		return false
	}
	const normal = 0x1p-14
	value := math.Abs(shapes.ConvertTo[float64](n.ConstantValue().Value()))
	fraction, _ := math.Frexp(value)
	return b.narrow == dtypes.Float16 && value < normal || fraction*8 != math.Trunc(fraction*8)
}

// constants returns the scalar constants of a model in half precision, with the values from which
// they were rounded. To find out, it builds the model in double precision, in a graph that is
// thrown away: GoMLX has one node in a graph for each constant, so it returns a known one for a
// value that is there. A model that can't be built so is a failure.
func (s *draft) constants(inputs, labels []*graph.Node, f BuildFn, given map[string]*model.Variable) (all map[*graph.Node]float64, failure any) {
	trial := s.newTrial(s.graph, given, layerhooks.Precision{Compute: dtypes.Float64, Weights: dtypes.Float64})
	defer trial.graph.Finalize()
	if failure = exceptions.Try(func() { trial.build(inputs, labels, f) }); failure != nil {
		return nil, failure
	}
	known := len(s.graph.Nodes())
	all = map[*graph.Node]float64{}
	for _, n := range trial.graph.Nodes() {
		if n.Type() != graph.NodeTypeConstant || !n.IsScalar() || n.DType() != dtypes.Float64 {
			continue
		}
		value := n.ConstantValue().Value().(float64)
		if own := graph.Scalar(s.graph, s.Precision.dtype(), value); int(own.Id()) < known {
			all[own] = value
		}
	}
	return all, nil
}

// build returns a node's value in single precision.
func (b *termBuilder) build(n *graph.Node) *graph.Node {
	if built := b.wide[n]; built != nil {
		return built
	}
	built := graph.ConvertDType(b.again(n), dtypes.Float32)
	b.wide[n] = built
	return built
}

// again builds a node with inputs of single precision, or returns it as it is.
func (b *termBuilder) again(n *graph.Node) *graph.Node {
	if value, ok := b.scalars[n]; ok {
		return graph.Scalar(n.Graph(), dtypes.Float32, value)
	}
	if b.isRounded(n) {
		b.rounded(shapes.ConvertTo[float64](n.ConstantValue().Value()))
	}
	if !b.rebuilds(n) {
		return n
	}
	if n.Type() == graph.NodeTypeConvertDType {
		return b.build(n.Inputs()[0])
	}
	inputs, same := make([]*graph.Node, len(n.Inputs())), true
	for i, input := range n.Inputs() {
		inputs[i] = input
		if b.floats(input) {
			inputs[i] = b.build(input)
		}
		same = same && inputs[i] == input
	}
	if same {
		return n
	}
	return n.CloneWithInputs(inputs...)
}

// floats reports whether a node has values of half or single precision.
func (b *termBuilder) floats(n *graph.Node) bool {
	return n.NumOutputs() == 1 && (n.DType() == b.narrow || n.DType() == dtypes.Float32)
}

// rebuilds reports whether a node is computed in single precision.
func (b *termBuilder) rebuilds(n *graph.Node) bool {
	switch {
	case !b.floats(n) || b.changed[n] || n.CustomGradient() != nil || len(n.Inputs()) == 0:
		return false
	case n.Type() == graph.NodeTypeConvertDType:
		return b.floats(n.Inputs()[0])
	case summed[n.Type()]:
		return true
	}
	return ofWeights[n.Type()] && b.fromWeights(n)
}

// fromWeights reports whether a node depends only on weights and constants.
func (b *termBuilder) fromWeights(n *graph.Node) bool {
	if known, ok := b.weights[n]; ok {
		return known
	}
	yes := false
	switch n.Type() {
	case graph.NodeTypeConstant, graph.NodeTypeIota:
		yes = true
	case graph.NodeTypeParameter:
		yes = strings.HasPrefix(n.GetParameterName(), "/") // As a variable's.
	default:
		yes = len(n.Inputs()) > 0
		for _, input := range n.Inputs() {
			yes = yes && b.fromWeights(input)
		}
	}
	b.weights[n] = yes
	return yes
}

// summed are the operations that are computed in single precision in any term.
var summed = map[graph.NodeType]bool{
	graph.NodeTypeAbs: true, graph.NodeTypeAdd: true, graph.NodeTypeDiv: true, graph.NodeTypeExp: true,
	graph.NodeTypeLog: true, graph.NodeTypeMul: true, graph.NodeTypeNeg: true, graph.NodeTypePow: true,
	graph.NodeTypeReduceSum: true, graph.NodeTypeReshape: true, graph.NodeTypeSqrt: true, graph.NodeTypeSub: true,
}

// ofWeights are those that are only in a term that depends on nothing but weights.
var ofWeights = map[graph.NodeType]bool{
	graph.NodeTypeClamp: true, graph.NodeTypeConcatenate: true, graph.NodeTypeDotGeneral: true, graph.NodeTypeExpm1: true,
	graph.NodeTypeIdentity: true, graph.NodeTypeLog1p: true, graph.NodeTypeLogistic: true, graph.NodeTypeMax: true,
	graph.NodeTypeMin: true, graph.NodeTypeReduceMax: true, graph.NodeTypeReduceMin: true, graph.NodeTypeRsqrt: true,
	graph.NodeTypeSign: true, graph.NodeTypeSlice: true, graph.NodeTypeTanh: true, graph.NodeTypeTranspose: true,
	graph.NodeTypeWhere: true,
}
