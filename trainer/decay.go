package trainer

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// ScaleDecay multiplies the weight decay of the variables under a scope by a factor from 0, for
// none, to 1. If a variable is under two scopes, the longer one counts. To decay a part more than
// the rest, give the optimizer the larger decay, and scale the rest down:
//
//	trainer.ScaleDecay("/", 0.1), trainer.ScaleDecay("/embedding", 1)
//
// It works with the WeightDecay of SGD and of GoMLX's Adam (AdamW). It doesn't change the L2
// regularization that GoMLX's layers add to the loss.
func ScaleDecay(scope string, factor float64) Option {
	return func(t *Trainer) { t.decays.scales = append(t.decays.scales, scale{scope, factor}) }
}

// NoDecayOfBiasesAndNorms turns the weight decay off for what is usually not decayed: variables
// with fewer than 2 axes, such as biases and the scales of normalization layers, and those of more
// axes with the names that GoMLX's layers give to these: biases, gain, scale, offset, gamma, beta.
// It has precedence over ScaleDecay.
func NoDecayOfBiasesAndNorms() Option { return func(t *Trainer) { t.decays.noVectors = true } }

// decays are the factors of the weight decay.
type decays struct {
	scales    []scale
	noVectors bool
}

func (d decays) any() bool { return d.noVectors || len(d.scales) > 0 }

// vectorNames are the names of biases and of the parameters of normalization layers, which have
// several axes if the layer's output has.
var vectorNames = []string{"biases", "gain", "scale", "offset", "gamma", "beta"}

// factor returns the factor of a variable's decay.
func (d decays) factor(v *model.Variable) float64 {
	if d.noVectors && (v.Shape().Rank() < 2 || slices.Contains(vectorNames, v.Name())) {
		return 0
	}
	return factorOf(d.scales, v.Path())
}

// decaying are the types of optimizers whose weight decay is known: it is the only effect of a
// weight's value on the change of the weight.
var decaying = []reflect.Type{reflect.TypeOf(optimizer.Adam().Done()), reflect.TypeFor[SGD]()}

// hasDecay reports whether an objective's optimizer decays weights.
func hasDecay(o Objective) bool {
	decay, _ := settings(reflect.ValueOf(o.Optimizer), plain(reflect.TypeOf(o.Optimizer)).PkgPath(), deepest)[weightDecay].(float64)
	return slices.Contains(decaying, reflect.TypeOf(o.Optimizer)) && decay > 0
}

// check returns an error for factors that make no sense.
func (d decays) check(objectives []Objective) error {
	for _, s := range d.scales {
		if err := checkScope(s.scope); err != nil {
			return fmt.Errorf("ScaleDecay: %w", err)
		}
		if !(s.factor >= 0 && s.factor <= 1) {
			return fmt.Errorf("ScaleDecay %q: the factor must be from 0 to 1, got %g: to decay a part more than the rest, give the optimizer the larger decay, and scale the rest down", s.scope, s.factor)
		}
	}
	if !d.any() || slices.ContainsFunc(objectives, hasDecay) {
		return nil
	}
	option := "NoDecayOfBiasesAndNorms"
	if len(d.scales) > 0 {
		option = fmt.Sprintf("ScaleDecay %q", d.scales[0].scope)
	}
	for _, o := range objectives {
		if kind := reflect.TypeOf(o.Optimizer); !slices.Contains(decaying, kind) {
			return fmt.Errorf("%s: the weight decay of the optimizer %s is not known: use trainer.SGD or GoMLX's Adam", option, kind)
		}
	}
	return errors.New(option + ": no optimizer has weight decay: set the WeightDecay of trainer.SGD or of Adam, or remove the option")
}

// params returns the hyper-parameters of the options.
func (d decays) params() map[string]any {
	params := map[string]any{}
	if len(d.scales) > 0 {
		params["scale_decay"] = scalesText(d.scales)
	}
	if d.noVectors {
		params["no_decay_of_biases_and_norms"] = true
	}
	return params
}

// decayed is a variable of which an optimizer sees only a part, so that it decays it less.
type decayed struct {
	path   string
	factor float64
}

// decayed returns the variables of an objective whose decay has a factor.
func (s *stepper) decayed(o Objective, variables []*model.Variable) (all []decayed) {
	if !s.decays.any() || !hasDecay(o) {
		return nil
	}
	for _, v := range variables {
		if factor := s.decays.factor(v); factor != 1 {
			all = append(all, decayed{v.Path(), factor})
		}
	}
	return all
}

// scaleDecay lets an optimizer change variables with factors of their decay.
//
// An optimizer with decay changes a weight θ to θ - change(gradient, θ), where θ matters for the
// decay only, which is proportional to it. So the optimizer sees factor·θ instead, and its change
// is added to θ.
func (s *stepper) scaleDecay(g *graph.Graph, all []decayed, apply func()) {
	values, seen := make([]*graph.Node, len(all)), make([]*graph.Node, len(all))
	for i, d := range all {
		v := s.store.GetVariable(d.path) // With zero1, what stands in for it: this rank's part.
		values[i] = v.NodeValue(g)
		seen[i] = graph.ZerosLike(values[i])
		if d.factor > 0 {
			seen[i] = graph.MulScalar(values[i], d.factor)
		}
		v.SetNodeValue(seen[i])
	}
	apply()
	for i, d := range all {
		v := s.store.GetVariable(d.path)
		v.SetNodeValue(graph.Add(values[i], graph.Sub(v.NodeValue(g), seen[i])))
	}
}

// checkDecays panics if nothing under a scope with a factor is decayed.
func (s *stepper) checkDecays() {
	s.checkScales("ScaleDecay", s.decays.scales)
	for _, scale := range s.decays.scales {
		decays := func(o Objective) bool {
			return hasDecay(o) && (under(scale.scope+"/", o.Scope) || under(o.Scope+"/", scale.scope))
		}
		if !slices.ContainsFunc(s.task.objectives, decays) {
			panic(fmt.Errorf("trainer: ScaleDecay %q: the optimizer of the variables there has no weight decay: set it, or remove the option", scale.scope))
		}
	}
}
