// Package weigh finds by what a mean in a graph must be weighted. A loss with a mask divides by the
// number of values that count, which differs from batch to batch. The mean of such means, over
// batches or ranks, is that over all values if each is weighted by what it divides by.
package weigh

import (
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
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
}

// Share returns Weight/Size; nil without a weight.
func (m Mean) Share() *graph.Node {
	if m.Weight == nil {
		return nil
	}
	return graph.DivScalar(m.Weight, m.Size)
}

// Sum returns the sum of means.
func Sum(all []Mean) Mean {
	sum := all[0]
	for _, m := range all[1:] {
		sum.Value = graph.Add(sum.Value, m.Value)
		sum.Mixed = sum.Mixed || m.Mixed || (sum.Weight == nil) != (m.Weight == nil) || sum.Weight != nil && !same(sum.Weight, m.Weight)
	}
	if sum.Mixed {
		sum.Weight = nil
	}
	return sum
}

// Loss returns a loss with its weight. What it divides by counts only if it doesn't depend on the
// variables that are trained: else it is no number of values, and has a gradient.
func Loss(store *model.Store, x *graph.Node) Mean { return newFinder(store, false).mean(x) }

// Metric is like Loss, but what a metric divides by may depend on the model: that of a precision
// is the number of positive predictions.
func Metric(store *model.Store, x *graph.Node) Mean { return newFinder(store, true).mean(x) }

// kind says what a node depends on.
type kind struct{ data, trained bool }

type finder struct {
	store  *model.Store
	metric bool
	kinds  map[*graph.Node]kind
}

func newFinder(store *model.Store, metric bool) *finder {
	return &finder{store: store, metric: metric, kinds: map[*graph.Node]kind{}}
}

func (f *finder) mean(x *graph.Node) Mean {
	p := f.parts(x)
	m := Mean{Value: p.value, Mixed: len(p.divisors) > 1 || len(p.divisors) == 1 && p.others}
	if len(p.divisors) == 1 && !m.Mixed {
		m.Weight, m.Size = count(p.divisors[0], f), size(p.divisors[0])
		if m.Weight.DType() != dtypes.Float64 {
			m.Weight = graph.ConvertDType(m.Weight, dtypes.Float32)
		}
		m.Weight = graph.StopGradient(m.Weight)
	}
	return m
}

// parts are what a scalar adds.
type parts struct {
	value    *graph.Node   // The scalar, without divisions by 0.
	divisors []*graph.Node // What its means divide by, each once.
	others   bool          // It also adds what depends on the data in another way.
}

// parts takes a scalar apart, through operations after which a weighted mean of it is still one.
func (f *finder) parts(x *graph.Node) parts {
	if !f.kind(x).data {
		return parts{value: x}
	}
	plain := parts{value: x, others: true}
	if !x.IsScalar() || x.CustomGradient() != nil {
		return plain
	}
	in := x.Inputs()
	switch x.Type() {
	case graph.NodeTypeIdentity, graph.NodeTypeConvertDType, graph.NodeTypeReshape, graph.NodeTypeNeg:
		return f.through(x, 0)
	case graph.NodeTypeReduceSum: // As of ReduceAllMean.
		if in[0].IsScalar() {
			return f.through(x, 0)
		}
	case graph.NodeTypeAdd, graph.NodeTypeSub:
		return f.through(x, 0, 1)
	case graph.NodeTypeWhere:
		return f.through(x, 1, 2)
	case graph.NodeTypeMul:
		for i, factor := range in {
			if other := in[1-i]; !f.kind(other).data || f.isReciprocal(factor) {
				return f.through(x, i)
			}
		}
	case graph.NodeTypeDiv:
		switch {
		case !f.kind(in[1]).data:
			return f.through(x, 0)
		case f.divides(in[1]):
			return parts{value: x.CloneWithInputs(in[0], nonzero(in[1])), divisors: in[1:]}
		}
	}
	return plain
}

// through takes the operands of a node apart.
func (f *finder) through(x *graph.Node, operands ...int) parts {
	all := parts{value: x}
	inputs := slices.Clone(x.Inputs())
	for _, i := range operands {
		p := f.parts(inputs[i])
		inputs[i] = p.value
		all.others = all.others || p.others
		for _, d := range p.divisors {
			if !slices.ContainsFunc(all.divisors, func(other *graph.Node) bool { return same(d, other) }) {
				all.divisors = append(all.divisors, d)
			}
		}
	}
	if !slices.Equal(inputs, x.Inputs()) {
		all.value = x.CloneWithInputs(inputs...)
	}
	return all
}

// isReciprocal reports whether a node is a number divided by a sum of the data.
func (f *finder) isReciprocal(x *graph.Node) bool {
	return x.Type() == graph.NodeTypeDiv && !f.kind(x.Inputs()[0]).data && f.divides(x.Inputs()[1])
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
	case graph.NodeTypeAdd, graph.NodeTypeSub, graph.NodeTypeMax, graph.NodeTypeMul:
		if f.isSum(in[0]) && f.isSum(in[1]) {
			return x.Type() == graph.NodeTypeAdd || x.Type() == graph.NodeTypeSub
		}
		return f.isSum(in[0]) && !f.kind(in[1]).data || f.isSum(in[1]) && !f.kind(in[0]).data
	case graph.NodeTypeDiv:
		return f.isSum(in[0]) && !f.kind(in[1]).data
	case graph.NodeTypeWhere: // As in nonzero.
		return f.isSum(in[2]) && !f.kind(in[1]).data
	}
	return false
}

// count returns what a divisor counts: without the limit from below that keeps it from being 0.
func count(x *graph.Node, f *finder) *graph.Node {
	in := x.Inputs()
	switch x.Type() {
	case graph.NodeTypeConvertDType:
		return graph.ConvertDType(count(in[0], f), x.DType())
	case graph.NodeTypeMax:
		if f.isSum(in[0]) {
			return count(in[0], f)
		}
		return count(in[1], f)
	case graph.NodeTypeWhere:
		return count(in[2], f)
	}
	return x
}

// size returns how many values a divisor sums.
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

// same reports whether two nodes have the same value for sure.
func same(a, b *graph.Node) bool {
	if a == b {
		return true
	}
	if a.Type() != b.Type() || !a.Shape().Equal(b.Shape()) || len(a.Inputs()) == 0 || len(a.Inputs()) != len(b.Inputs()) {
		return false
	}
	switch a.Type() {
	case graph.NodeTypeIdentity, graph.NodeTypeConvertDType, graph.NodeTypeReshape, graph.NodeTypeNotEqual, graph.NodeTypeGreaterThan, graph.NodeTypeGreaterOrEqual:
	case graph.NodeTypeBroadcastInDim: // Sums over all axes don't depend on which axes are new.
	case graph.NodeTypeReduceSum, graph.NodeTypeAdd, graph.NodeTypeMul, graph.NodeTypeMax, graph.NodeTypeWhere, graph.NodeTypeEqual:
		if !a.IsScalar() {
			return false
		}
	default:
		return false
	}
	return slices.EqualFunc(a.Inputs(), b.Inputs(), same)
}

// kind returns what a node depends on.
func (f *finder) kind(x *graph.Node) kind {
	if known, ok := f.kinds[x]; ok {
		return known
	}
	var all kind
	if x.Type() == graph.NodeTypeParameter {
		path := x.GetParameterName()
		all.data = !strings.HasPrefix(path, "/") // Those of variables are paths.
		all.trained = !all.data && f.store.GetVariable(path).Trainable
	}
	for _, operand := range x.Inputs() {
		one := f.kind(operand)
		all.data, all.trained = all.data || one.data, all.trained || one.trained
	}
	f.kinds[x] = all
	return all
}
