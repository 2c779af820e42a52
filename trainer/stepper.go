package trainer

import (
	"fmt"
	"path"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
)

// stepper is the optimizer that GoMLX's trainer sees. From the losses of a step it builds the whole update: gradients of each objective,
// accumulated over batches, averaged over the ranks by one all-reduce, clipped, and handed to the objective's own optimizer.
//
// With accumulation there are two programs: one that only adds gradients up, without a word to other ranks, and one that updates. The
// accumulated gradients are variables. Where histograms are logged, there is a further one, which also gives out the gradients.
type stepper struct {
	world      *distributed.World
	store      *model.Store
	objectives []Objective
	precision  precision
	clipNorm   float64
	accumulate int
	afterShare func() error // Called when a graph's variables have their values, before it runs.
	afterBuild func() error // Called once the graph of an update is built, before it runs.

	built          bool // The program of an update has been built.
	withHistograms bool
	kind           programKind // Of the program that is built or run now.
	shown          shownGradients
	losses         []*graph.Node // Of the objectives, in the graph that is built now. Nil with one loss, which GoMLX keeps.
}

// programKind is the spec of a batch: GoMLX compiles a program for each.
type programKind string

const (
	accumulates     programKind = "accumulate"
	updates         programKind = "update"
	updatesAndShows programKind = "update and show"
)

var _ optimizer.Interface = (*stepper)(nil)

// stepLoss builds the step and returns the sum of its losses.
func (s *stepper) stepLoss(step StepFn, labels, inputs []*graph.Node) *graph.Node {
	losses := s.precision.outputs(step(s.store.RootScope(), inputs, labels))
	if len(losses) != len(s.objectives) {
		panic(fmt.Errorf("trainer: the step gave %d losses for %d objectives", len(losses), len(s.objectives)))
	}
	total := losses[0]
	for i, l := range losses {
		if !l.Shape().IsScalar() {
			panic(fmt.Errorf("trainer: the loss of %q has the shape %s: it must be a scalar (graph.ReduceAllMean)", s.objectives[i].Name, l.Shape()))
		}
		if i > 0 {
			total = graph.Add(total, l)
		}
	}
	s.losses = losses
	return total
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

// UpdateGraph implements optimizer.Interface.
func (s *stepper) UpdateGraph(_ *model.Scope, g *graph.Graph, loss *graph.Node) {
	losses := s.losses
	if losses == nil {
		losses = []*graph.Node{loss}
	}
	scopes := make([]*model.Scope, len(losses))
	counts := make([]int, len(losses))
	var gradients []*graph.Node
	for i, l := range losses {
		scopes[i] = s.store.Scope(s.objectives[i].Scope)
		own := scopes[i].BuildTrainableVariablesGradientsGraph(l)
		if len(own) == 0 {
			panic(fmt.Errorf("trainer: the loss of the objective %q depends on no trainable variable under %q", s.objectives[i].Name, s.objectives[i].Scope))
		}
		if s.accumulate > 1 {
			own = s.addUp(scopes[i], g, own)
		}
		counts[i] = len(own)
		gradients = append(gradients, own...)
	}
	s.shown.node = nil
	if s.kind == accumulates {
		return
	}
	gradients = s.world.AverageGradients(s.store, gradients)
	if s.kind == updatesAndShows {
		s.shown.build(scopes, g, gradients)
	}
	step := optimizer.GetGlobalStepVar(s.store)
	before := step.NodeValue(g)
	for i, l := range losses {
		own := s.clip(gradients[:counts[i]])
		gradients = gradients[counts[i]:]
		apply(s.objectives[i], scopes[i], own, l)
	}
	step.SetNodeValue(graph.AddScalar(before, 1)) // Once, whatever the number of optimizers.
	if err := s.afterBuild(); err != nil {
		panic(err)
	}
	s.built = true
}

func apply(o Objective, scope *model.Scope, gradients []*graph.Node, loss *graph.Node) {
	withGradients, ok := o.Optimizer.(train.OptimizeWithGradients)
	if !ok {
		panic(fmt.Errorf("trainer: the optimizer %T can't be used: it has no method UpdateGraphWithGradients, so gradients can't be averaged, accumulated or clipped", o.Optimizer))
	}
	withGradients.UpdateGraphWithGradients(scope, gradients, loss.DType())
}

// addUp adds the gradients to those of the batches before. In the program that updates it returns their mean and begins anew.
func (s *stepper) addUp(scope *model.Scope, g *graph.Graph, gradients []*graph.Node) []*graph.Node {
	variables := trained(scope, g)
	mean := make([]*graph.Node, len(gradients))
	for i, gradient := range gradients {
		sum := s.accumulator(variables[i])
		value := graph.Add(sum.NodeValue(g), gradient)
		if s.kind == accumulates {
			sum.SetNodeValue(value)
			continue
		}
		sum.SetNodeValue(graph.ZerosLike(value))
		mean[i] = graph.MulScalar(value, 1/float64(s.accumulate))
	}
	return mean
}

// trained are the variables that an objective trains, in the order of their gradients.
func trained(scope *model.Scope, g *graph.Graph) []*model.Variable {
	var variables []*model.Variable
	for v := range scope.IterVariables() {
		if v.Trainable && v.InUseByGraph(g) {
			variables = append(variables, v)
		}
	}
	return variables
}

func (s *stepper) accumulator(v *model.Variable) *model.Variable {
	scope := s.store.Scope(path.Join("/", train.AccumulatedGradientsScope, v.Scope()))
	return scope.WithInitializer(initializer.Zero).VariableWithShape(v.Name(), v.Shape().Clone()).SetTrainable(false)
}

// clip scales the gradients so that their global norm is at most the limit.
func (s *stepper) clip(gradients []*graph.Node) []*graph.Node {
	if s.clipNorm == 0 {
		return gradients
	}
	dtype := gradients[0].DType()
	squares := graph.ScalarZero(gradients[0].Graph(), dtype)
	for _, gradient := range gradients {
		squares = graph.Add(squares, graph.ConvertDType(graph.ReduceAllSum(graph.Square(gradient)), dtype))
	}
	norm := graph.Sqrt(squares)
	factor := graph.MinScalar(graph.Div(graph.Scalar(norm.Graph(), dtype, s.clipNorm), graph.AddScalar(norm, 1e-6)), 1)
	clipped := make([]*graph.Node, len(gradients))
	for i, gradient := range gradients {
		clipped[i] = graph.Mul(gradient, graph.ConvertDType(factor, gradient.DType()))
	}
	return clipped
}

// Clear implements optimizer.Interface.
func (s *stepper) Clear(scope *model.Scope) error {
	for _, o := range s.objectives {
		if err := o.Optimizer.Clear(scope); err != nil {
			return err
		}
	}
	return nil
}
