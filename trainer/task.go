package trainer

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"gonbatch/internal/layerhooks"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// Task says what to train: how a batch becomes losses, and which optimizer minimizes each of them.
// Use Supervised or Adversarial to make one.
type Task struct {
	model      modelFn // Nil if the task predicts nothing.
	loss       loss.LossFn
	evalLoss   loss.LossFn // Nil if it is loss.
	step       StepFn      // Nil if the step consists of model and loss.
	objectives []Objective
	metrics    []metric.Interface
}

// modelFn maps inputs to predictions.
type modelFn func(scope *model.Scope, inputs []*graph.Node) []*graph.Node

// ModelFn is a graph-building function from the inputs of a batch to predictions.
type ModelFn interface {
	~func(*model.Scope, *graph.Node) *graph.Node |
		~func(*model.Scope, []*graph.Node) *graph.Node |
		~func(*model.Scope, []*graph.Node) []*graph.Node
}

// StepFn is a graph-building function that computes one scalar loss from a batch for each objective
// of the task, in their order. Each objective's model keeps its variables in its own scope.
type StepFn func(scope *model.Scope, inputs, labels []*graph.Node) []*graph.Node

// Objective is one of a task's losses, with the optimizer that minimizes it.
type Objective struct {
	// Name appears in logs: "generator" gives the metric train/generator_loss.
	Name string
	// Scope is the path of the variables that the optimizer changes, such as "/generator". The
	// scopes of objectives must not overlap.
	Scope string
	// Optimizer changes the variables. Each objective needs its own.
	Optimizer optimizer.Interface
}

// Supervised returns a task that trains a model with one loss over predictions and labels.
//
// Validations and tests compute the metrics: GoMLX's mean metrics and its median, or your own that
// implement metric.UpdateGo. They are exact for any number of ranks and devices. For a median, the
// graph must return one value for each example. New refuses a metric whose value would be wrong.
func Supervised[F ModelFn](modelFn F, lossFn loss.LossFn, opt optimizer.Interface, metrics ...metric.Interface) Task {
	return Task{model: canonical(modelFn), loss: lossFn, objectives: []Objective{{Name: "", Scope: "/", Optimizer: opt}}, metrics: metrics}
}

// Adversarial returns a task that trains several models with several losses in one step, such as a
// GAN's generator and discriminator (Goodfellow et al., Generative Adversarial Nets, 2014). All
// losses are computed from the same weights; then each objective's optimizer changes the variables
// of its scope. Each objective also minimizes the losses that layers add, such as L2
// regularization. Metrics get the step's inputs as predictions.
func Adversarial(step StepFn, objectives ...Objective) Task {
	return Task{step: step, objectives: objectives}
}

// WithPredict returns a copy of t that predicts with f: for a GAN, with the generator.
func WithPredict[F ModelFn](t Task, f F) Task {
	t.model = canonical(f)
	return t
}

// WithEvalLoss returns a copy of a supervised task whose validations and tests compute another loss
// than the training: the one without label smoothing or MixUp.
func WithEvalLoss(t Task, f loss.LossFn) Task {
	t.evalLoss = f
	return t
}

func canonical[F ModelFn](f F) modelFn {
	switch f := any(f).(type) {
	case func(*model.Scope, *graph.Node) *graph.Node:
		return func(scope *model.Scope, inputs []*graph.Node) []*graph.Node {
			if len(inputs) != 1 {
				panic(fmt.Errorf("trainer: the model takes one input, the dataset has %d: write it as func(*model.Scope, []*graph.Node) *graph.Node", len(inputs)))
			}
			return []*graph.Node{f(scope, inputs[0])}
		}
	case func(*model.Scope, []*graph.Node) *graph.Node:
		return func(scope *model.Scope, inputs []*graph.Node) []*graph.Node { return []*graph.Node{f(scope, inputs)} }
	case func(*model.Scope, []*graph.Node) []*graph.Node:
		return f
	}
	panic(fmt.Errorf("trainer: a model of the named type %T: pass a plain function", f))
}

// check returns an error if the task can't be trained.
func (t Task) check() error {
	if t.step == nil && (t.model == nil || t.loss == nil) {
		return fmt.Errorf("a task without a model or a loss: create it with Supervised or Adversarial")
	}
	if t.step != nil && t.evalLoss != nil {
		return errors.New("WithEvalLoss is for a task of Supervised: the step of this one computes the losses")
	}
	if len(t.objectives) == 0 {
		return fmt.Errorf("a task without objectives: nothing would be trained")
	}
	for i, o := range t.objectives {
		if err := o.check(len(t.objectives)); err != nil {
			return err
		}
		for _, other := range t.objectives[:i] {
			if err := o.apart(other); err != nil {
				return err
			}
		}
	}
	return t.checkMetricNames()
}

func (o Objective) check(all int) error {
	switch {
	case o.Optimizer == nil:
		return fmt.Errorf("the objective %q has no optimizer", o.Name)
	case all > 1 && o.Name == "":
		return fmt.Errorf("an objective has no name: its metric needs one")
	case len(o.Scope) == 0 || o.Scope[0] != '/' || path.Clean(o.Scope) != o.Scope:
		return fmt.Errorf("the objective %q has the scope %q: it must be a path such as \"/generator\"", o.Name, o.Scope)
	}
	if own, ok := o.Optimizer.(interface{ check() error }); ok {
		return own.check()
	}
	return checkNumbers(o)
}

// apart refuses two objectives that share variables, because two optimizers would change them.
// Assigning a shared variable to the inner objective would be a guess, and would train less of the
// outer one than its scope says.
func (o Objective) apart(other Objective) error {
	inner, outer := o, other
	if len(inner.Scope) < len(outer.Scope) {
		inner, outer = outer, inner
	}
	switch {
	case inner.Scope == outer.Scope:
		return fmt.Errorf("two objectives have the scope %q: each variable can have one optimizer only", o.Scope)
	case strings.HasPrefix(inner.Scope, strings.TrimSuffix(outer.Scope, "/")+"/"):
		return fmt.Errorf("the scope %q of the objective %q lies in %q of %q: each variable can have one optimizer only, so give each model a scope outside the others",
			inner.Scope, inner.Name, outer.Scope, outer.Name)
	}
	return nil
}

// checkMetricNames refuses two metrics that are logged under the same name: one would be lost.
func (t Task) checkMetricNames() error {
	names := map[string]string{metricName("val", "Loss", ""): "the loss"}
	add := func(name, what string) error {
		if name == "val/" {
			return fmt.Errorf("%s can't be logged by its name: the name needs a word besides mean and batch", what)
		}
		if other, taken := names[name]; taken {
			return fmt.Errorf("%s and %s are both logged as %q: rename one", other, what, name)
		}
		names[name] = what
		return nil
	}
	if t.step != nil {
		for _, o := range t.objectives {
			if o.Name == "" {
				continue // It is the only objective: its loss is the loss.
			}
			if err := add(metricName("val", "Loss", o.Name), fmt.Sprintf("the loss of the objective %q", o.Name)); err != nil {
				return err
			}
		}
	}
	for _, m := range t.metrics {
		if err := add(metricName("val", m.Name(), ""), fmt.Sprintf("the metric %q", m.Name())); err != nil {
			return err
		}
	}
	return nil
}

// ComputeDType returns the element type in which the precision of the training run computes
// (Config.Precision): Float32 outside of one. A model whose inputs are integers, such as tokens,
// doesn't see it in them. It converts what it looks up for them:
//
//	x := layers.Embedding(scope, tokens, dtypes.Float32, vocabulary, width)
//	x = graph.ConvertDType(x, trainer.ComputeDType(x))
func ComputeDType(node *graph.Node) dtypes.DType { return layerhooks.PrecisionOf(node.Graph()).Compute }
