package trainer

import (
	"fmt"
	"math"
	"path"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/internal/plural"
	"gonbatch/trainer/internal/step"
)

// SGD is stochastic gradient descent with momentum and weight decay. It computes the same as
// torch.optim.SGD. In an update with the gradient g and the learning rate γ, for each weight θ,
//
//	g  = g + WeightDecay · θ
//	b  = g                                         in the first update
//	b  = Momentum · b + (1 - Dampening) · g        in the others
//	θ  = θ - γ · b                                 heavy ball
//	θ  = θ - γ · (g + Momentum · b)                if Nesterov is set
//
// Without Momentum, θ = θ - γ · g. The heavy ball is by Polyak (Some methods of speeding up the
// convergence of iteration methods, 1964). Nesterov's form follows Sutskever et al. (On the
// importance of initialization and momentum in deep learning, 2013). The formulas are those in
// PyTorch's documentation of torch.optim.SGD.
//
// The rate stays constant unless a schedule changes it (Config.Schedule). In contrast, GoMLX's
// optimizer.StochasticGradientDescent divides the rate by the square root of the update's number by
// default.
//
// SGD also works with GoMLX's own train.Trainer.
type SGD struct {
	LearningRate float64 // More than 0.
	Momentum     float64 // Less than 1. 0: no momentum. 0.9 is usual.
	Dampening    float64 // Of the momentum, less than 1. 0 is usual. Nesterov needs 0.
	WeightDecay  float64 // L2 penalty of all weights, biases included. 0: none.
	Nesterov     bool    // Needs Momentum.
}

var (
	_ optimizer.Interface         = SGD{}
	_ train.OptimizeWithGradients = SGD{}
)

// check returns an error for values that make no sense.
func (o SGD) check() error {
	switch {
	case !(o.LearningRate > 0) || math.IsInf(o.LearningRate, 1):
		return fmt.Errorf("trainer.SGD: LearningRate must be more than 0 and finite, got %g", o.LearningRate)
	case !(o.Momentum >= 0 && o.Momentum < 1):
		return fmt.Errorf("trainer.SGD: Momentum must be at least 0 and less than 1, got %g", o.Momentum)
	case !(o.WeightDecay >= 0) || math.IsInf(o.WeightDecay, 1):
		return fmt.Errorf("trainer.SGD: WeightDecay must be at least 0 and finite, got %g", o.WeightDecay)
	case !(o.Dampening < 1) || math.IsInf(o.Dampening, -1):
		return fmt.Errorf("trainer.SGD: Dampening must be finite and less than 1, got %g", o.Dampening)
	case o.Dampening != 0 && o.Momentum == 0:
		return fmt.Errorf("trainer.SGD: Dampening needs a Momentum, got Dampening %g and Momentum 0", o.Dampening)
	case o.Nesterov && (o.Momentum == 0 || o.Dampening != 0):
		return fmt.Errorf("trainer.SGD: Nesterov needs a Momentum and no Dampening, got Momentum %g and Dampening %g", o.Momentum, o.Dampening)
	}
	return nil
}

// UpdateGraph implements optimizer.Interface.
func (o SGD) UpdateGraph(scope *model.Scope, _ *graph.Graph, loss *graph.Node) {
	o.UpdateGraphWithGradients(scope, scope.BuildTrainableVariablesGradientsGraph(loss), loss.DType())
}

// UpdateGraphWithGradients implements train.OptimizeWithGradients.
func (o SGD) UpdateGraphWithGradients(scope *model.Scope, gradients []*graph.Node, lossDType dtypes.DType) {
	if err := o.check(); err != nil {
		panic(err)
	}
	g := gradients[0].Graph()
	variables := step.Trained(scope, g)
	if len(variables) != len(gradients) {
		panic(fmt.Errorf("trainer.SGD: %s for %s under %q: were variables made in between?", plural.Of(len(gradients), "gradient"), plural.Of(len(variables), "variable"), scope.Scope()))
	}
	rate := optimizer.LearningRateVar(scope, lossDType, o.LearningRate).NodeValue(g)
	optimizer.IncrementGlobalStep(g, dtypes.Int64)
	first := o.isFirst(scope, g)
	for i, v := range variables {
		o.update(scope, v, gradients[i], rate, first)
	}
}

// update builds the update of one variable, in at least single precision.
func (o SGD) update(scope *model.Scope, v *model.Variable, gradient, rate, first *graph.Node) {
	g, dtype := gradient.Graph(), v.DType()
	if dtype.IsHalfPrecision() {
		dtype = dtypes.Float32
	}
	optimizer.TraceNaNInGradients(scope, v, gradient)
	value := graph.ConvertDType(v.NodeValue(g), dtype)
	direction := optimizer.ClipNaNsInGradients(scope, graph.ConvertDType(gradient, dtype))
	if o.WeightDecay > 0 {
		direction = graph.Add(direction, graph.MulScalar(value, o.WeightDecay))
	}
	if o.Momentum > 0 {
		direction = o.withMomentum(scope.Store(), v, direction, first)
	}
	step := optimizer.ClipStepByValue(scope, graph.Mul(graph.ConvertDType(rate, dtype), direction))
	updated := optimizer.ClipNaNsInUpdates(scope, value, graph.Sub(value, step))
	v.SetNodeValue(graph.ConvertDType(updated, v.DType()))
}

// withMomentum returns the direction of the update, computed from all gradients so far.
func (o SGD) withMomentum(store *model.Store, v *model.Variable, gradient, first *graph.Node) *graph.Node {
	shape := v.Shape().Clone()
	shape.DType = gradient.DType()
	buffer := store.Scope(sgdPath(v.Scope())).WithInitializer(initializer.Zero).VariableWithShape(v.Name()+"_momentum", shape).SetTrainable(false)
	moved := graph.MulScalar(buffer.NodeValue(gradient.Graph()), o.Momentum)
	if first == nil {
		moved = graph.Add(moved, gradient)
	} else {
		moved = graph.Where(first, gradient, graph.Add(moved, graph.MulScalar(gradient, 1-o.Dampening)))
	}
	buffer.SetNodeValue(moved)
	if o.Nesterov {
		return graph.Add(gradient, graph.MulScalar(moved, o.Momentum))
	}
	return moved
}

// isFirst returns a node that is true in the optimizer's first update. It returns nil if that makes
// no difference: without dampening, the first b is the gradient because b is 0 before it.
func (o SGD) isFirst(scope *model.Scope, g *graph.Graph) *graph.Node {
	if o.Momentum == 0 || o.Dampening == 0 {
		return nil
	}
	count := scope.Store().Scope(sgdPath(scope.Scope())).VariableWithValue("#updates", int64(0)).SetTrainable(false)
	before := count.NodeValue(g)
	count.SetNodeValue(graph.AddScalar(before, 1))
	return graph.Equal(before, graph.ZerosLike(before))
}

// Clear implements optimizer.Interface: it deletes the momentum of the variables under the scope.
func (o SGD) Clear(scope *model.Scope) error {
	return scope.Store().DeleteVariablesInScope(sgdPath(scope.Scope()))
}

// sgdPath returns the scope where SGD keeps its state for a scope of the model. It is under the
// optimizers' scope, so it isn't mistaken for a part of the model.
func sgdPath(scope string) string { return path.Join("/", optimizer.Scope, "sgd", scope) }
