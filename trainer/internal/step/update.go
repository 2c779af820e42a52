package step

import (
	"fmt"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// update builds the update of a training step from its losses.
func (s *draft) update() {
	scopes := make([]*model.Scope, len(s.losses))
	for i := range s.losses {
		scopes[i] = s.Store.Scope(s.Objectives[i].Scope)
	}
	defer s.freeze(s.graph)()
	s.checkScales("ScaleRate", s.Scales)
	s.checkDecays()
	s.checkDivided()
	gradients := s.gradients(scopes)
	if s.kind == Accumulates { // This batch updates nothing.
		withoutPerStepUpdates(s.Store, s.graph, "/")
		return
	}
	s.apply(scopes, s.averaged(scopes, gradients))
	s.perStepUpdates(s.graph)
}

// gradients returns the gradients of all objectives, one after the other, averaged over the batches
// of this update. Before its last batch the gradients are only summed, and the result is
// meaningless.
func (s *draft) gradients(scopes []*model.Scope) []*graph.Node {
	var all []*graph.Node
	var batches *group
	if s.Accumulate > 1 {
		batches = newGroup(s.Store, s.graph, s.kind != Accumulates)
	}
	sizes := make([]int, len(s.losses))
	for i, l := range s.losses {
		own := s.gradientsOf(i, scopes[i], l)
		all, sizes[i] = append(all, own...), len(own)
	}
	s.lossScale.keepBuffers(s.graph, all)
	if batches == nil {
		return all
	}
	var means []*graph.Node
	for i, size := range sizes {
		means = append(means, batches.add(Trained(scopes[i], s.graph), all[:size])...)
		all = all[size:]
		s.means.weights[i] = batches.addWeight(i, s.means.weights[i])
	}
	return means
}

// gradientsOf returns the gradients of an objective in this batch, on this rank.
func (s *draft) gradientsOf(objective int, scope *model.Scope, loss *graph.Node) []*graph.Node {
	loss, factor := s.weighted(objective, loss)
	variables := Trained(scope, loss.Graph())
	own := graph.Gradient(s.lossScale.scaled(loss), s.asUsed(variables)...)
	s.sayUnreached(variables, own)
	own = widened(own)
	if len(own) == 0 {
		o := s.Objectives[objective]
		why := ""
		if len(s.Frozen) > 0 {
			why = ": Freeze leaves none, with " + strings.Join(s.Frozen, ", ")
		}
		panic(fmt.Errorf("trainer: the loss of the objective %q depends on no trainable variable under %q%s", o.Name, o.Scope, why))
	}
	own = s.lossScale.unscaled(own, loss)
	if factor != 1 {
		for i, gradient := range own {
			own[i] = graph.MulScalar(gradient, factor)
		}
	}
	return own
}

// asUsed returns the values of variables as the model uses them: those that it has changed itself
// are others in half precision.
func (s *draft) asUsed(variables []*model.Variable) []*graph.Node {
	values := valuesOf(s.graph, variables)
	for i, v := range variables {
		if changed := s.changedHere[v.Path()]; changed != nil {
			values[i] = changed
		}
	}
	return values
}

// averaged returns the means of the gradients over the ranks or, if nothing needs these whole, this
// rank's parts of them.
func (s *draft) averaged(scopes []*model.Scope, gradients []*graph.Node) []*graph.Node {
	n, weights := len(gradients), s.means.present()
	if s.scatters() {
		gradients = widened(s.World.ScatterGradients(s.Store, s.compressed(gradients)))
		for i, weight := range weights {
			weights[i] = graph.DivScalar(s.World.SumOverRanks(weight), s.World.Size())
		}
		s.means.unweighted(scopes, s.graph, gradients, weights)
		return gradients
	}
	gradients = widened(s.World.AverageGradients(s.Store, append(s.compressed(gradients), weights...)))
	gradients, weights = gradients[:n], gradients[n:]
	s.means.unweighted(scopes, s.graph, gradients, weights)
	if s.kind == UpdatesAndShows {
		s.showGradients(scopes, gradients)
	}
	return gradients
}

// scatters reports whether each rank gets only its parts of the gradients.
func (s *draft) scatters() bool {
	return s.parts != nil && s.kind != UpdatesAndShows && len(s.Changes) == 0
}

// toUpdate returns an objective's gradients as its optimizer gets them: of the whole variables or,
// if the ranks share the update, of this rank's parts.
func (s *draft) toUpdate(variables []*model.Variable, gradients []*graph.Node) []*graph.Node {
	gradients = s.changed(variables, gradients)
	if s.parts != nil && !s.scatters() {
		gradients = s.World.PartsOf(s.Store, gradients)
	}
	if s.ClipValue > 0 {
		gradients = clamped(gradients, s.ClipValue)
	}
	if s.ClipNorm > 0 {
		gradients = clipped(gradients, s.ClipNorm, s.wholeSum)
	}
	return narrowed(gradients, variables)
}

// apply passes each objective's gradients to its optimizer.
func (s *draft) apply(scopes []*model.Scope, gradients []*graph.Node) {
	g := s.graph
	step := optimizer.GetGlobalStepVar(s.Store)
	before, values := step.NodeValue(g), s.lossScale.before(g)
	finite := s.finite(gradients)
	made := s.notesState(g)
	var all []*model.Variable
	for i, l := range s.losses {
		variables := Trained(scopes[i], g)
		own := gradients[:len(variables)]
		gradients = gradients[len(variables):]
		step.SetNodeValue(before) // Each optimizer increments the step; some depend on it.
		old := valuesOf(g, variables)
		s.optimize(g, s.Objectives[i], scopes[i], variables, s.toUpdate(variables, own), l)
		s.rescale(g, variables, old)
		all = append(all, variables...)
	}
	s.average(g, all)
	if finite != nil {
		s.perStepUpdates(g)
		s.lossScale.finish(g, finite, values)
	}
	step.SetNodeValue(graph.AddScalar(before, 1))
	made()
}

// finite returns a node that is true if no gradient of this update has overflowed on any rank; nil
// if it doesn't matter.
func (s *draft) finite(gradients []*graph.Node) *graph.Node {
	if s.lossScale == nil {
		return nil
	}
	finite := allFinite(gradients)
	if !s.scatters() {
		return finite // All ranks have all gradients.
	}
	overflows := s.wholeSum(graph.ConvertDType(graph.LogicalNot(finite), dtypes.Float32))
	return graph.Equal(overflows, graph.ZerosLike(overflows))
}

// optimize lets an objective's optimizer change its variables or, if the ranks share the update,
// this rank's parts of them.
func (s *Step) optimize(g *graph.Graph, o Objective, scope *model.Scope, variables []*model.Variable, gradients []*graph.Node, loss *graph.Node) {
	decayed := s.decayed(o, variables)
	run := func() {
		s.scaleDecay(g, decayed, func() { apply(o, scope, gradients, loss) })
	}
	if s.parts == nil {
		run()
		return
	}
	s.parts.update(s.Store, g, scope, variables, run)
}

// wholeSum returns a sum over whole gradients, of the sum over what this rank has.
func (s *Step) wholeSum(sum *graph.Node) *graph.Node {
	if s.parts == nil {
		return sum
	}
	return s.World.SumOverRanks(sum)
}

func apply(o Objective, scope *model.Scope, gradients []*graph.Node, loss *graph.Node) {
	withGradients, ok := o.Optimizer.(train.OptimizeWithGradients)
	if !ok {
		panic(fmt.Errorf("trainer: the optimizer %T can't be used: it has no method UpdateGraphWithGradients, so gradients can't be averaged, accumulated or clipped", o.Optimizer))
	}
	withGradients.UpdateGraphWithGradients(scope, gradients, loss.DType())
}

// perStepUpdates makes the changes that layers make after an update part of it.
func (s *Step) perStepUpdates(g *graph.Graph) {
	train.ExecPerStepUpdateGraphFn(g)
	withoutPerStepUpdates(s.Store, g, "/")
}

// withoutPerStepUpdates removes the updates that the layers of a scope make after each step, such
// as L1 regularization's rounding of small weights to zero.
func withoutPerStepUpdates(store *model.Store, g *graph.Graph, scope string) {
	for p := range store.IterGraphParams(g) {
		if p.Key == train.TrainerPerStepUpdateGraphFnParamKey && Under(p.Scope+"/", scope) {
			model.SetGraphParam(g, model.JoinPath(p.Scope, p.Key), nil)
		}
	}
}
