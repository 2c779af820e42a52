// Package weigh finds by what a mean in a graph must be weighted. A loss with a mask divides by the
// number of values that count, which differs from batch to batch. The mean of such means, over
// batches or ranks, is that over all values if each is weighted by what it divides by.
package weigh

import (
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Mean is a scalar of a graph, and what it counts.
type Mean struct {
	// Value is the scalar. Where it divides by a sum that is 0, it is 0.
	Value *graph.Node
	// Weight is a scalar of Float32 or Float64: what Value divides by, if that depends on the data;
	// else nil.
	Weight *graph.Node
	// Size is the number of values of which Weight counts some, so that Weight/Size is about 1.
	Size int
	// Mixed is set if Value adds means over different numbers of values: no weight is right.
	Mixed bool

	parts parts
}

// PerExample returns the weight for each example of a batch; nil without a weight. In all batches
// of a training it has the same meaning, also in those with longer sequences.
func (m Mean) PerExample(examples int) *graph.Node {
	if m.Weight == nil {
		return nil
	}
	return graph.DivScalar(m.Weight, examples)
}

// Sum returns the sum of means.
func Sum(all ...Mean) Mean {
	var sum parts
	for _, m := range all {
		if sum.value != nil {
			sum.value = graph.Add(sum.value, m.Value)
		} else {
			sum.value = m.Value
		}
		sum.join(m.parts)
	}
	return sum.mean()
}

// Loss returns a loss with its weight. What it divides by counts only if the gradients don't depend
// on it: else it is no number of values.
func Loss(store *model.Store, x *graph.Node) Mean { return newFinder(store, false).of(x).mean() }

// Metric is like Loss, but what a metric divides by may depend on the model: that of a precision
// is the number of positive predictions.
func Metric(store *model.Store, x *graph.Node) Mean { return newFinder(store, true).of(x).mean() }

// Examples returns the size of a graph's batch: that of the first axis of its first tensor of data;
// 1 if it has none.
func Examples(g *graph.Graph) int {
	for _, n := range g.Nodes() {
		if isData(n) && n.Rank() > 0 {
			return max(1, n.Shape().Dimensions[0])
		}
	}
	return 1
}

// isData reports whether a node is a tensor of the batch. The parameters of variables are paths.
func isData(n *graph.Node) bool {
	return n.Type() == graph.NodeTypeParameter && !strings.HasPrefix(n.GetParameterName(), model.ScopeSeparator)
}

// parts are what a value adds.
type parts struct {
	value  *graph.Node   // Without divisions by 0.
	counts []*graph.Node // What its means count, each once.
	others bool          // It also adds what depends on the data in another way.
}

// join adds what another value adds.
func (p *parts) join(other parts) {
	p.others = p.others || other.others
	for _, count := range other.counts {
		if !slices.ContainsFunc(p.counts, func(known *graph.Node) bool { return same(count, known) }) {
			p.counts = append(p.counts, count)
		}
	}
}

func (p parts) mean() Mean {
	m := Mean{Value: p.value, Mixed: len(p.counts) > 1 || len(p.counts) == 1 && p.others, parts: p}
	if len(p.counts) == 1 && !m.Mixed {
		m.Weight, m.Size = p.counts[0], size(p.counts[0])
		if m.Weight.DType() != dtypes.Float64 {
			m.Weight = graph.ConvertDType(m.Weight, dtypes.Float32)
		}
		m.Weight = graph.StopGradient(m.Weight)
	}
	return m
}

// kind says what a node depends on.
type kind struct{ data, trained bool }

type finder struct {
	store  *model.Store
	metric bool
	kinds  map[*graph.Node]kind
	known  map[*graph.Node]parts
}

func newFinder(store *model.Store, metric bool) *finder {
	return &finder{store: store, metric: metric, kinds: map[*graph.Node]kind{}, known: map[*graph.Node]parts{}}
}

// of takes a value apart.
func (f *finder) of(x *graph.Node) parts {
	p, ok := f.known[x]
	if !ok {
		p = f.takeApart(x)
		f.known[x] = p
	}
	return p
}

// takeApart takes a value apart, through operations after which a weighted mean of it is still one.
func (f *finder) takeApart(x *graph.Node) parts {
	if !f.kind(x).data {
		return parts{value: x}
	}
	plain := parts{value: x, others: true}
	if x.CustomGradient() != nil {
		return plain
	}
	in := x.Inputs()
	switch x.Type() {
	case graph.NodeTypeIdentity, graph.NodeTypeConvertDType, graph.NodeTypeReshape, graph.NodeTypeNeg, graph.NodeTypeBroadcastInDim, graph.NodeTypeReduceSum:
		return f.through(x, 0)
	case graph.NodeTypeAdd, graph.NodeTypeSub:
		return f.through(x, 0, 1)
	case graph.NodeTypeConcatenate:
		all := make([]int, len(in))
		for i := range in {
			all[i] = i
		}
		return f.through(x, all...)
	case graph.NodeTypeWhere:
		return f.through(x, 1, 2)
	case graph.NodeTypeMul:
		a, b := f.of(in[0]), f.of(in[1])
		switch {
		case len(a.counts) > 0 && len(b.counts) == 0:
			return f.through(x, 0)
		case len(b.counts) > 0 && len(a.counts) == 0:
			return f.through(x, 1)
		}
	case graph.NodeTypeDiv:
		if !f.kind(in[1]).data {
			return f.through(x, 0)
		}
		if divisor := scalarOf(in[1]); f.divides(divisor) && len(f.of(in[0]).counts) == 0 {
			safe := nonzero(divisor)
			if safe != divisor {
				x = x.CloneWithInputs(in[0], again(in[1], divisor, safe))
			}
			return parts{value: x, counts: []*graph.Node{f.count(divisor)}}
		}
	}
	return plain
}

// through takes the operands of a node apart.
func (f *finder) through(x *graph.Node, operands ...int) parts {
	all := parts{value: x}
	inputs := slices.Clone(x.Inputs())
	for _, i := range operands {
		p := f.of(inputs[i])
		inputs[i] = p.value
		all.join(p)
	}
	if !slices.Equal(inputs, x.Inputs()) {
		all.value = x.CloneWithInputs(inputs...)
	}
	if len(all.counts) == 0 && all.others {
		all.value = x
	}
	return all
}

// scalarOf returns the scalar of which a node repeats the value; the node itself if there is none.
func scalarOf(x *graph.Node) *graph.Node {
	for n := x; ; n = n.Inputs()[0] {
		switch {
		case n.IsScalar():
			return n
		case n.Type() != graph.NodeTypeBroadcastInDim && n.Type() != graph.NodeTypeReshape && n.Type() != graph.NodeTypeConvertDType && n.Type() != graph.NodeTypeIdentity:
			return x
		}
	}
}

// again builds a node that repeats a scalar's value with another scalar.
func again(x, scalar, other *graph.Node) *graph.Node {
	if x == scalar {
		return other
	}
	return x.CloneWithInputs(again(x.Inputs()[0], scalar, other))
}

// divides reports whether a divisor is what a mean counts: a sum over the data.
func (f *finder) divides(x *graph.Node) bool {
	return (f.metric || !f.kind(x).trained) && f.isSum(x)
}

// isSum reports whether a scalar of two batches together is the sum of those of each, up to
// constants.
func (f *finder) isSum(x *graph.Node) bool {
	if !x.IsScalar() || !f.kind(x).data {
		return false
	}
	in := x.Inputs()
	switch x.Type() {
	case graph.NodeTypeReduceSum:
		return true
	case graph.NodeTypeIdentity, graph.NodeTypeConvertDType, graph.NodeTypeReshape:
		return f.isSum(in[0])
	case graph.NodeTypeAdd, graph.NodeTypeSub:
		return f.isSum(in[0]) && f.isSum(in[1]) || f.besideConstants(x) >= 0
	case graph.NodeTypeMax, graph.NodeTypeMin, graph.NodeTypeMul, graph.NodeTypeClamp, graph.NodeTypeWhere:
		return f.besideConstants(x) >= 0
	case graph.NodeTypeDiv:
		return f.isSum(in[0]) && !f.kind(in[1]).data
	}
	return false
}

// besideConstants returns the index of the only operand that is a sum, if the others don't depend
// on the data; else -1. The condition of a Where doesn't count.
func (f *finder) besideConstants(x *graph.Node) int {
	at := -1
	for i, operand := range x.Inputs() {
		switch {
		case x.Type() == graph.NodeTypeWhere && i == 0 || !f.kind(operand).data:
		case at >= 0 || !f.isSum(operand):
			return -1
		default:
			at = i
		}
	}
	return at
}

// small is a number that is added to a divisor only so that it isn't 0.
const small = 1e-3

// count returns what a divisor counts: without limits and numbers that keep it from being 0, and
// without factors, which the mean's numerator has too.
func (f *finder) count(x *graph.Node) *graph.Node {
	in := x.Inputs()
	switch x.Type() {
	case graph.NodeTypeConvertDType:
		if counted := f.count(in[0]); counted.DType().IsFloat() || !x.DType().IsFloat() {
			return counted
		}
		return graph.ConvertDType(f.count(in[0]), x.DType())
	case graph.NodeTypeIdentity, graph.NodeTypeReshape:
		return f.count(in[0])
	case graph.NodeTypeMax, graph.NodeTypeMin, graph.NodeTypeClamp, graph.NodeTypeWhere, graph.NodeTypeMul:
		return f.count(in[f.besideConstants(x)])
	case graph.NodeTypeDiv:
		return f.count(in[0])
	case graph.NodeTypeAdd:
		if at := f.besideConstants(x); at >= 0 && isSmall(in[1-at]) {
			return f.count(in[at])
		}
	}
	return x
}

func isSmall(x *graph.Node) bool {
	value := x.ConstantValue()
	return value != nil && value.Shape().IsScalar() && value.DType().IsFloat() && math.Abs(shapes.ConvertTo[float64](value.Value())) <= small
}

// size returns how many values a count sums.
func size(x *graph.Node) int {
	if x.Type() == graph.NodeTypeReduceSum {
		return max(1, x.Inputs()[0].Shape().Size())
	}
	most := 1
	for _, operand := range x.Inputs() {
		if x.IsScalar() {
			most = max(most, size(operand))
		}
	}
	return most
}

// nonzero returns 1 in place of 0.
func nonzero(x *graph.Node) *graph.Node {
	if x.Type() == graph.NodeTypeMax || x.Type() == graph.NodeTypeWhere {
		return x // It isn't 0.
	}
	return graph.Where(graph.Equal(x, graph.ZerosLike(x)), graph.OnesLike(x), x)
}

// determined are the operations of which inputs and shape determine the value.
var determined = map[graph.NodeType]bool{
	graph.NodeTypeIdentity: true, graph.NodeTypeConvertDType: true, graph.NodeTypeReshape: true, graph.NodeTypeAbs: true, graph.NodeTypeNeg: true, graph.NodeTypeSign: true,
	graph.NodeTypeAdd: true, graph.NodeTypeSub: true, graph.NodeTypeMul: true, graph.NodeTypeDiv: true, graph.NodeTypeMax: true, graph.NodeTypeMin: true, graph.NodeTypeClamp: true,
	graph.NodeTypeLogicalNot: true, graph.NodeTypeLogicalAnd: true, graph.NodeTypeLogicalOr: true, graph.NodeTypeLogicalXor: true, graph.NodeTypeIsFinite: true, graph.NodeTypeIsNaN: true,
	graph.NodeTypeEqual: true, graph.NodeTypeNotEqual: true, graph.NodeTypeLessThan: true, graph.NodeTypeLessOrEqual: true, graph.NodeTypeGreaterThan: true, graph.NodeTypeGreaterOrEqual: true,
	graph.NodeTypeWhere: true,
}

// same reports whether two nodes have the same value for sure.
func same(a, b *graph.Node) bool {
	if a == b {
		return true
	}
	if a.Type() != b.Type() || !a.Shape().Equal(b.Shape()) || len(a.Inputs()) != len(b.Inputs()) {
		return false
	}
	switch {
	case a.Type() == graph.NodeTypeConstant:
		return a.ConstantValue().Equal(b.ConstantValue())
	case a.Type() == graph.NodeTypeIota:
		return a.Rank() == 1 // Else they may be along other axes.
	case determined[a.Type()]:
	case a.Type() == graph.NodeTypeReduceSum && a.IsScalar(): // Over all axes.
	case a.Type() == graph.NodeTypeBroadcastInDim && places(a.Inputs()[0].Shape().Dimensions, a.Shape().Dimensions) == 1:
	default:
		return false
	}
	return slices.EqualFunc(a.Inputs(), b.Inputs(), same)
}

// places returns in how many ways axes can be chosen that have these sizes. An axis of size 1 may
// be any.
func places(sizes, axes []int) int {
	if len(sizes) == 0 {
		return 1
	}
	all := 0
	for i, axis := range axes {
		if sizes[0] == axis || sizes[0] == 1 {
			all += places(sizes[1:], axes[i+1:])
		}
	}
	return all
}

// kind returns what a node depends on.
func (f *finder) kind(x *graph.Node) kind {
	if known, ok := f.kinds[x]; ok {
		return known
	}
	var all kind
	if x.Type() == graph.NodeTypeParameter {
		all.data = isData(x)
		if v := x.GetParameterName(); !all.data {
			all.data = strings.HasSuffix(v, model.ScopeSeparator+model.RNGStateVariableName) // A mask may be drawn.
			known := f.store.GetVariable(v)
			all.trained = known != nil && known.Trainable
		}
	}
	for _, operand := range x.Inputs() {
		one := f.kind(operand)
		all.data, all.trained = all.data || one.data, all.trained || one.trained
	}
	if x.StopGradient() || x.NumOutputs() == 1 && !x.DType().IsFloat() {
		all.trained = false // No gradient passes.
	}
	f.kinds[x] = all
	return all
}
