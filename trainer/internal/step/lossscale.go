package step

import (
	"path"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// lossScale multiplies the loss before its gradients are computed, because many gradients are too
// small for float16, and divides the gradients by it afterwards (Micikevicius et al., Mixed
// Precision Training, 2018, https://arxiv.org/abs/1710.03740, section 3.2). If a gradient has
// overflowed on any rank, the update is skipped on all, and the scale halves. After many updates
// without an overflow it doubles. The numbers are those of PyTorch's torch.amp.GradScaler.
//
// A nil lossScale does nothing.
type lossScale struct {
	store *model.Store
	ranks int
}

const (
	firstScale  = 1 << 16
	scaleGrowth = 2.
	scaleCut    = 0.5
	// growthInterval is the number of updates without an overflow after which the scale grows.
	growthInterval = 2000
)

// ScaleScope has the variables of the loss scale. It is under the optimizers' scope, so it isn't
// mistaken for a part of the model.
var ScaleScope = path.Join("/", optimizer.Scope, "loss_scale")

// ScalePath is the path of the scale itself.
var ScalePath = path.Join(ScaleScope, "scale")

// newLossScale returns nil for a precision that needs none.
func newLossScale(store *model.Store, p Precision, ranks int) *lossScale {
	if p != f16Mixed {
		return nil
	}
	return &lossScale{store: store, ranks: ranks}
}

func (s *lossScale) scale() *model.Variable { return s.variable("scale", float32(firstScale)) }

// streak counts the updates since the last overflow, or the last growth.
func (s *lossScale) streak() *model.Variable { return s.variable("#updates", int32(0)) }

func (s *lossScale) skipped() *model.Variable { return s.variable("#skipped", int32(0)) }

func (s *lossScale) variable(name string, initial any) *model.Variable {
	return s.store.Scope(ScaleScope).VariableWithValue(name, initial).SetTrainable(false)
}

// scaled returns the loss whose gradients are computed.
func (s *lossScale) scaled(loss *graph.Node) *graph.Node {
	if s == nil {
		return loss
	}
	return graph.Mul(loss, s.factor(loss))
}

// factor returns the factor of a rank's loss, in the type of a node. A rank's loss is the mean over
// its part of a batch. Divided by the number of ranks, it gives an example's numbers the size that
// they have on a single rank.
func (s *lossScale) factor(like *graph.Node) *graph.Node {
	return graph.ConvertDType(graph.DivScalar(s.scale().NodeValue(like), s.ranks), like.DType())
}

// unscaled returns the gradients of the loss itself. If the loss isn't finite, neither is one of
// them: then the update is skipped.
func (s *lossScale) unscaled(gradients []*graph.Node, loss *graph.Node) []*graph.Node {
	if s == nil {
		return gradients
	}
	unscaled, told := make([]*graph.Node, len(gradients)), false
	for i, gradient := range gradients {
		own := graph.Div(gradient, s.factor(gradient))
		if !told && !own.Shape().IsZeroSize() {
			infinite := graph.BroadcastToShape(graph.Infinity(own.Graph(), own.DType(), 1), own.Shape())
			own, told = graph.Where(graph.IsFinite(loss), own, infinite), true
		}
		unscaled[i] = own
	}
	return unscaled
}

// keepBuffers keeps what the model changes by itself, such as the averages of batch normalization,
// as it is if a gradient of this batch on this rank has overflowed: the averages have perhaps too,
// and would never recover.
func (s *lossScale) keepBuffers(g *graph.Graph, gradients []*graph.Node) {
	if s == nil {
		return
	}
	var finite *graph.Node
	for v := range s.store.IterVariables() {
		if v.Trainable || !v.DType().IsFloat() || !v.ChangedInGraph(g) {
			continue
		}
		if finite == nil {
			finite = allFinite(gradients)
		}
		v.SetNodeValue(graph.Where(finite, v.NodeValue(g), g.GetParameterByName(v.Path())))
	}
}

// allFinite returns a node that is true if no gradient has overflowed.
func allFinite(gradients []*graph.Node) *graph.Node {
	all := graph.Const(gradients[0].Graph(), true)
	for _, gradient := range gradients {
		if !gradient.Shape().IsZeroSize() {
			all = graph.LogicalAnd(all, graph.LogicalAll(graph.IsFinite(gradient)))
		}
	}
	return all
}

// before returns the values in the graph before an update.
func (s *lossScale) before(g *graph.Graph) map[*model.Variable]*graph.Node {
	if s == nil {
		return nil
	}
	all := map[*model.Variable]*graph.Node{}
	for v := range s.store.IterVariables() {
		if v.InUseByGraph(g) {
			all[v] = v.NodeValue(g)
		}
	}
	return all
}

// finish keeps all variables as they were before the update if a gradient has overflowed, and moves
// the scale.
func (s *lossScale) finish(g *graph.Graph, finite *graph.Node, before map[*model.Variable]*graph.Node) {
	for v := range s.store.IterVariables() {
		if !v.ChangedInGraph(g) {
			continue
		}
		old := before[v]
		if old == nil {
			old = g.GetParameterByName(v.Path())
		}
		if value := v.NodeValue(g); value != old {
			v.SetNodeValue(graph.Where(finite, value, old))
		}
	}
	s.move(g, finite)
}

// move moves the scale after an update.
func (s *lossScale) move(g *graph.Graph, finite *graph.Node) {
	scale, streak, skipped := s.scale(), s.streak(), s.skipped()
	now, updates := scale.NodeValue(g), graph.AddScalar(streak.NodeValue(g), 1)
	grows := graph.GreaterOrEqual(updates, graph.Scalar(g, dtypes.Int32, growthInterval))
	larger := graph.MulScalar(now, scaleGrowth)
	grown := graph.Where(graph.LogicalAnd(grows, graph.IsFinite(larger)), larger, now)
	scale.SetNodeValue(graph.Where(finite, grown, graph.MulScalar(now, scaleCut)))
	streak.SetNodeValue(graph.Where(graph.LogicalAnd(finite, graph.LogicalNot(grows)), updates, graph.ZerosLike(updates)))
	skipped.SetNodeValue(graph.Add(skipped.NodeValue(g), graph.ConvertDType(graph.LogicalNot(finite), dtypes.Int32)))
}

// state returns the scale and the number of skipped updates, after a step.
func (s *lossScale) state(g *graph.Graph) *graph.Node {
	return graph.Stack([]*graph.Node{s.scale().NodeValue(g), graph.ConvertDType(s.skipped().NodeValue(g), dtypes.Float32)}, 0)
}
