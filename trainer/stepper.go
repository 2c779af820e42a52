package trainer

import (
	"fmt"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
)

// stepper builds the programs of a task: training steps, evaluations and predictions. From the
// losses of a step it builds the whole update: gradients of each objective, accumulated over
// batches, averaged over the ranks by one collective, clipped, and passed to the objective's own
// optimizer.
//
// With accumulation there are two programs: one that only adds gradients, in which the ranks
// communicate for batch normalization at most, and one that updates. The accumulated gradients are
// variables. If histograms are logged, there is a third program, which also returns the gradients.
type stepper struct {
	world        *distributed.World
	store        *model.Store
	task         Task
	precision    precision
	clipNorm     float64
	clipValue    float64
	emaDecay     float64 // 0: no averages of the weights.
	accumulate   int
	compression  string   // See Config.GradientCompression.
	localNorms   bool     // See Config.LocalBatchNorm.
	frozen       []string // Scopes.
	scales       []scale
	decays       decays
	changes      []GradientFn
	trainMetrics []trainMetric
	parts        *parts                // Nil unless the ranks share the update.
	division     *distributed.Division // Nil if there is one device.
	axes         []axisChoice          // Chosen for divided variables.
	lossScale    *lossScale            // Nil unless the precision needs it.
	printf       func(format string, args ...any)
	afterShare   func() error // Called when a graph's variables have their values, before it runs.
	afterBuild   func() error // Called once the graph of an update is built, before it runs.

	programs programs
	built    bool            // The program of an update has been built.
	state    map[string]bool // The paths of the variables that the optimizers have created, also before the training was resumed.
	fixed    map[string]bool // The paths of the model's variables that no optimizer changes.
	halves   map[string]bool // The paths of the variables for which a model has asked in half precision.
	shown    []shownGradient // Of the program that returns them.
	said     map[string]bool // See once.

	trainBounds, evalBounds, predictBounds bounds
}

// once reports whether something hasn't been checked, or said, before.
func (s *stepper) once(what string) bool {
	first := !s.said[what]
	s.said[what] = true
	return first
}

// inputs prepares the model's inputs, in the graph of a step.
func (s *stepper) inputs(inputs []*graph.Node) []*graph.Node {
	if len(inputs) > 0 && !s.localNorms {
		s.world.SyncBatchNorm(inputs[0].Graph())
	}
	return s.precision.inputs(inputs)
}

// share gives all ranks rank 0's weights.
func (s *stepper) share() {
	if err := s.world.ShareVariables(s.store); err != nil {
		panic(err)
	}
	if err := s.afterShare(); err != nil {
		panic(err)
	}
}

// update builds the update of a training step from its losses.
func (s *draft) update() {
	scopes := make([]*model.Scope, len(s.losses))
	for i := range s.losses {
		scopes[i] = s.store.Scope(s.task.objectives[i].Scope)
	}
	defer s.freeze(s.graph)()
	s.checkScales("ScaleRate", s.scales)
	s.checkDecays()
	s.checkDivided()
	gradients := s.gradients(scopes)
	if s.kind == accumulates { // This batch updates nothing.
		withoutPerStepUpdates(s.store, s.graph, "/")
		return
	}
	s.apply(scopes, s.averaged(scopes, gradients))
	train.ExecPerStepUpdateGraphFn(s.graph)
}

// gradients returns the gradients of all objectives, one after the other, averaged over the batches
// of this update. Before its last batch the gradients are only summed, and the result is
// meaningless.
func (s *draft) gradients(scopes []*model.Scope) []*graph.Node {
	var all []*graph.Node
	var batches *group
	if s.accumulate > 1 {
		batches = newGroup(s.store, s.graph, s.kind != accumulates)
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
		means = append(means, batches.add(trained(scopes[i], s.graph), all[:size])...)
		all = all[size:]
		s.means.weights[i] = batches.addWeight(i, s.means.weights[i])
	}
	return means
}

// gradientsOf returns the gradients of an objective in this batch, on this rank.
func (s *draft) gradientsOf(objective int, scope *model.Scope, loss *graph.Node) []*graph.Node {
	loss, factor := s.weighted(objective, loss)
	variables := trained(scope, loss.Graph())
	own := graph.Gradient(s.lossScale.scaled(loss), s.asUsed(variables)...)
	s.sayUnreached(variables, own)
	own = widened(own)
	if len(own) == 0 {
		o := s.task.objectives[objective]
		why := ""
		if len(s.frozen) > 0 {
			why = ": Freeze leaves none, with " + strings.Join(s.frozen, ", ")
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
		gradients = widened(s.world.ScatterGradients(s.store, s.compressed(gradients)))
		for i, weight := range weights {
			weights[i] = graph.DivScalar(s.world.SumOverRanks(weight), s.world.Size())
		}
		s.means.unweighted(scopes, s.graph, gradients, weights)
		return gradients
	}
	gradients = widened(s.world.AverageGradients(s.store, append(s.compressed(gradients), weights...)))
	gradients, weights = gradients[:n], gradients[n:]
	s.means.unweighted(scopes, s.graph, gradients, weights)
	if s.kind == updatesAndShows {
		s.showGradients(scopes, gradients)
	}
	return gradients
}

// scatters reports whether each rank gets only its parts of the gradients.
func (s *draft) scatters() bool {
	return s.parts != nil && s.kind != updatesAndShows && len(s.changes) == 0
}

// toUpdate returns an objective's gradients as its optimizer gets them: of the whole variables or,
// if the ranks share the update, of this rank's parts.
func (s *draft) toUpdate(variables []*model.Variable, gradients []*graph.Node) []*graph.Node {
	gradients = s.changed(variables, gradients)
	if s.parts != nil && !s.scatters() {
		gradients = s.world.PartsOf(s.store, gradients)
	}
	if s.clipValue > 0 {
		gradients = clamped(gradients, s.clipValue)
	}
	if s.clipNorm > 0 {
		gradients = clipped(gradients, s.clipNorm, s.wholeSum)
	}
	return narrowed(gradients, variables)
}

// apply passes each objective's gradients to its optimizer.
func (s *draft) apply(scopes []*model.Scope, gradients []*graph.Node) {
	g := s.graph
	step := optimizer.GetGlobalStepVar(s.store)
	before, values := step.NodeValue(g), s.lossScale.before(g)
	finite := s.finite(gradients)
	made := s.notesState(g)
	var all []*model.Variable
	for i, l := range s.losses {
		variables := trained(scopes[i], g)
		own := gradients[:len(variables)]
		gradients = gradients[len(variables):]
		step.SetNodeValue(before) // Each optimizer increments the step; some depend on it.
		old := valuesOf(g, variables)
		s.optimize(g, s.task.objectives[i], scopes[i], variables, s.toUpdate(variables, own), l)
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

// optimize lets an objective's optimizer change its variables or, if the ranks share the update, this
// rank's parts of them.
func (s *stepper) optimize(g *graph.Graph, o Objective, scope *model.Scope, variables []*model.Variable, gradients []*graph.Node, loss *graph.Node) {
	decayed := s.decayed(o, variables)
	run := func() {
		s.scaleDecay(g, decayed, func() { apply(o, scope, gradients, loss) })
	}
	if s.parts == nil {
		run()
		return
	}
	s.parts.update(s.store, g, scope, variables, run)
}

// wholeSum returns a sum over whole gradients, of the sum over what this rank has.
func (s *stepper) wholeSum(sum *graph.Node) *graph.Node {
	if s.parts == nil {
		return sum
	}
	return s.world.SumOverRanks(sum)
}

func apply(o Objective, scope *model.Scope, gradients []*graph.Node, loss *graph.Node) {
	withGradients, ok := o.Optimizer.(train.OptimizeWithGradients)
	if !ok {
		panic(fmt.Errorf("trainer: the optimizer %T can't be used: it has no method UpdateGraphWithGradients, so gradients can't be averaged, accumulated or clipped", o.Optimizer))
	}
	withGradients.UpdateGraphWithGradients(scope, gradients, loss.DType())
}

// perStepUpdates makes the changes that layers make after an update part of it.
func (s *stepper) perStepUpdates(g *graph.Graph) {
	train.ExecPerStepUpdateGraphFn(g)
	withoutPerStepUpdates(s.store, g, "/")
}

// withoutPerStepUpdates removes the updates that the layers of a scope make after each step, such
// as L1 regularization's rounding of small weights to zero.
func withoutPerStepUpdates(store *model.Store, g *graph.Graph, scope string) {
	for p := range store.IterGraphParams(g) {
		if p.Key == train.TrainerPerStepUpdateGraphFnParamKey && under(p.Scope+"/", scope) {
			model.SetGraphParam(g, model.JoinPath(p.Scope, p.Key), nil)
		}
	}
}
