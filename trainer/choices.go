package trainer

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/gomlx/compute/support/xslices"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/trainer/internal/step"
)

// Freeze keeps the variables under the scopes, such as "/body", as they are: no gradients are
// computed for them, and no optimizer changes them. The statistics of batch normalization under the
// scopes still follow the data. Fit fails if the model has no trainable variable under a scope.
func Freeze(scopes ...string) Option {
	return func(o *chosen) { o.choices.Frozen = append(o.choices.Frozen, scopes...) }
}

// ScaleRate multiplies the learning rate of the variables under a scope by a factor, as PyTorch's
// parameter groups do. If a variable is under two scopes, the longer one counts. ScaleRate scales
// the whole change of an update, so it is exact for optimizers whose change is proportional to the
// rate, such as SGD and Adam. The learning rate in the logs doesn't include the factor.
func ScaleRate(scope string, factor float64) Option {
	return func(o *chosen) {
		o.choices.Scales = append(o.choices.Scales, step.Scale{Scope: scope, Factor: factor})
	}
}

// ScaleDecay multiplies the weight decay of the variables under a scope by a factor from 0, for
// none, to 1. If a variable is under two scopes, the longer one counts. To decay a part more than
// the rest, give the optimizer the larger decay, and scale the rest down:
//
//	trainer.ScaleDecay("/", 0.1), trainer.ScaleDecay("/embedding", 1)
//
// It works with the WeightDecay of SGD and of GoMLX's Adam (AdamW). It doesn't change the L2
// regularization that GoMLX's layers add to the loss.
func ScaleDecay(scope string, factor float64) Option {
	return func(o *chosen) {
		o.choices.Decays.Scales = append(o.choices.Decays.Scales, step.Scale{Scope: scope, Factor: factor})
	}
}

// NoDecayOfBiasesAndNorms turns the weight decay off for what is usually not decayed: variables
// with fewer than 2 axes, such as biases and the scales of normalization layers, and those of more
// axes with the names that GoMLX's layers give to these: biases, gain, scale, offset, gamma, beta.
// It has precedence over ScaleDecay.
func NoDecayOfBiasesAndNorms() Option { return func(o *chosen) { o.choices.Decays.NoVectors = true } }

// Whole is the axis for Divide that keeps variables whole on each device.
const Whole = distributed.Whole

// Divide chooses the axis along which the variables under a scope, or the one variable with this
// path, are divided among the devices of Config.ModelParallel. Axes are counted from 0; Whole keeps
// the variables whole. The optimizer's state and averages of a weight are divided as it is. If a
// variable is under two scopes, the longer one counts. Variables without this axis stay whole. The
// result of a training run is the same for any axis, except for rounding; its memory and its speed
// are not.
//
// By default, a variable with 2 or more axes and at least 16,384 elements is divided along its last
// axis that the number of devices divides.
//
// Fit fails if the model has no variable with this axis under the scope, or if a variable can't be
// divided evenly. With a ModelParallel of 1, Divide changes nothing.
func Divide(scope string, axis int) Option {
	return func(o *chosen) { o.choices.Axes = append(o.choices.Axes, step.AxisChoice{Scope: scope, Axis: axis}) }
}

// GradientFn builds the graph that changes the gradients of an objective. It returns as many, of
// the same shapes, in the same order; it may return those that it is given.
type GradientFn func(variables []*model.Variable, gradients []*graph.Node) []*graph.Node

// WithGradients changes the gradients before each update, in the compiled program: it divides them
// by their norm, for instance. change is called while the program is built, not at each update, for
// each objective. The gradients are those of the whole batch, over all ranks and accumulated
// batches, in float32 or float64, before they are clipped. Histograms show them before the change.
//
// change can also keep what it computes of the gradients, such as their norms, in variables of the
// store that are not trainable, which a callback reads in BatchEnd.
//
// Several changes are made in the order of the options. They must not draw the model's random
// numbers, which differ between ranks: the weights would differ too.
func WithGradients(change GradientFn) Option {
	return func(o *chosen) { o.choices.Changes = append(o.choices.Changes, step.GradientFn(change)) }
}

// WithTrainMetric computes a metric of each training batch, from the labels and the predictions
// that its loss is computed from. The trainer logs it as "train/" and the name, as the mean over
// batches and ranks since the last report, and it can be monitored. The predictions are those of
// the training: with dropout, and each batch before its update.
//
//	trainer.WithTrainMetric("accuracy", metric.SparseCategoricalAccuracyGraph)
//
// value is a mean over the examples of a batch, or has a value for each. A batch whose mean divides
// by a sum over its data, such as the number of values that a mask leaves, counts as that, for each
// example. For an Adversarial task, the predictions are the inputs of the step.
func WithTrainMetric(name string, value metric.BaseMetricGraph) Option {
	return func(o *chosen) {
		o.choices.TrainMetrics = append(o.choices.TrainMetrics, step.Metric{Name: name, Value: value})
	}
}

func (t *Trainer) checkScopes() error {
	for _, scope := range t.choices.Frozen {
		if err := step.CheckScope(scope); err != nil {
			return fmt.Errorf("Freeze: %w", err)
		}
	}
	for _, s := range t.choices.Scales {
		if err := step.CheckScope(s.Scope); err != nil {
			return fmt.Errorf("ScaleRate: %w", err)
		}
		if !(s.Factor > 0) || math.IsInf(s.Factor, 1) {
			return fmt.Errorf("ScaleRate %q: the factor must be more than 0 and finite, got %g: use Freeze for variables that must not change", s.Scope, s.Factor)
		}
	}
	return errors.Join(checkDecays(t.choices.Decays, t.task.objectives), t.checkDivide())
}

// checkDecays returns an error for factors that make no sense.
func checkDecays(d step.Decays, objectives []Objective) error {
	for _, s := range d.Scales {
		if err := step.CheckScope(s.Scope); err != nil {
			return fmt.Errorf("ScaleDecay: %w", err)
		}
		if !(s.Factor >= 0 && s.Factor <= 1) {
			return fmt.Errorf("ScaleDecay %q: the factor must be from 0 to 1, got %g: to decay a part more than the rest, give the optimizer the larger decay, and scale the rest down", s.Scope, s.Factor)
		}
	}
	if !d.Any() || slices.ContainsFunc(objectives, hasDecay) {
		return nil
	}
	option := "NoDecayOfBiasesAndNorms"
	if len(d.Scales) > 0 {
		option = fmt.Sprintf("ScaleDecay %q", d.Scales[0].Scope)
	}
	for _, o := range objectives {
		if kind := reflect.TypeOf(o.Optimizer); !slices.Contains(decaying, kind) {
			return fmt.Errorf("%s: the weight decay of the optimizer %s is not known: use trainer.SGD or GoMLX's Adam", option, kind)
		}
	}
	return errors.New(option + ": no optimizer has weight decay: set the WeightDecay of trainer.SGD or of Adam, or remove the option")
}

// decayParams returns the hyper-parameters of the options about decay.
func decayParams(d step.Decays) map[string]any {
	params := map[string]any{}
	if len(d.Scales) > 0 {
		params["scale_decay"] = scalesText(d.Scales)
	}
	if d.NoVectors {
		params["no_decay_of_biases_and_norms"] = true
	}
	return params
}

// decaying are the types of optimizers whose weight decay is known: it is the only effect of a
// weight's value on the change of the weight.
var decaying = []reflect.Type{reflect.TypeOf(optimizer.Adam().Done()), reflect.TypeFor[SGD]()}

// hasDecay reports whether an objective's optimizer decays weights.
func hasDecay(o Objective) bool {
	decay, _ := settings(reflect.ValueOf(o.Optimizer), plain(reflect.TypeOf(o.Optimizer)).PkgPath(), deepest)[weightDecay].(float64)
	return slices.Contains(decaying, reflect.TypeOf(o.Optimizer)) && decay > 0
}

// checkDivide checks the options.
func (t *Trainer) checkDivide() error {
	for _, d := range t.choices.Axes {
		if err := step.CheckScope(d.Scope); err != nil {
			return fmt.Errorf("Divide: %w", err)
		}
		if d.Axis < Whole {
			return fmt.Errorf("Divide %q: the axis %d: it must be at least 0, or trainer.Whole", d.Scope, d.Axis)
		}
	}
	return nil
}

func (t *Trainer) checkTrainMetrics() error {
	taken := append(t.task.trainingLosses(), "train/examples_per_second", "train/data_wait", "train/loss_scale", "train/skipped_updates")
	for _, m := range t.choices.TrainMetrics {
		switch name := loggedMetric(m); {
		case !validationName.MatchString(m.Name):
			return fmt.Errorf("the training metric %q: its name must have small letters, digits and _ only", m.Name)
		case slices.Contains(taken, name):
			return fmt.Errorf("the training metric %q: the trainer logs another metric as %q: rename it", m.Name, name)
		case m.Value == nil:
			return fmt.Errorf("the training metric %q is nil", m.Name)
		default:
			taken = append(taken, name)
		}
	}
	return nil
}

// loggedMetric returns the name in logs.
func loggedMetric(m step.Metric) string { return "train/" + m.Name }

// scalesText returns scopes with their factors, as text. The order of the options doesn't matter,
// except of two with the same scope.
func scalesText(scales []step.Scale) string {
	sorted := slices.SortedStableFunc(slices.Values(scales), func(a, b step.Scale) int { return strings.Compare(a.Scope, b.Scope) })
	all := xslices.Map(sorted, func(s step.Scale) string { return fmt.Sprintf("%s %g", s.Scope, s.Factor) })
	return strings.Join(all, ", ")
}

// scopeParams returns the hyper-parameters of the options about scopes.
func (t *Trainer) scopeParams() map[string]any {
	params := decayParams(t.choices.Decays)
	if len(t.choices.Frozen) > 0 {
		params["freeze"] = strings.Join(slices.Sorted(slices.Values(t.choices.Frozen)), ", ")
	}
	if len(t.choices.Scales) > 0 {
		params["scale_rate"] = scalesText(t.choices.Scales)
	}
	return params
}
