package step

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Decays are the factors of the weight decay.
type Decays struct {
	Scales []Scale
	// NoVectors turns the decay of biases and of the parameters of normalization layers off.
	NoVectors bool
}

// Any reports whether there are factors.
func (d Decays) Any() bool { return d.NoVectors || len(d.Scales) > 0 }

// vectorNames are the names of biases and of the parameters of normalization layers, which have
// several axes if the layer's output has.
var vectorNames = []string{"biases", "gain", "scale", "offset", "gamma", "beta"}

// factor returns the factor of a variable's decay.
func (d Decays) factor(v *model.Variable) float64 {
	if d.NoVectors && (v.Shape().Rank() < 2 || slices.Contains(vectorNames, v.Name())) {
		return 0
	}
	return factorOf(d.Scales, v.Path())
}

// decayed is a variable of which an optimizer sees only a part, so that it decays it less.
type decayed struct {
	path   string
	factor float64
}

// decayed returns the variables of an objective whose decay has a factor.
func (s *Step) decayed(o Objective, variables []*model.Variable) (all []decayed) {
	if !s.Decays.Any() || !o.Decays {
		return nil
	}
	for _, v := range variables {
		if factor := s.Decays.factor(v); factor != 1 {
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
func (s *Step) scaleDecay(g *graph.Graph, all []decayed, apply func()) {
	values, seen := make([]*graph.Node, len(all)), make([]*graph.Node, len(all))
	for i, d := range all {
		v := s.Store.GetVariable(d.path) // With zero1, what stands in for it: this rank's part.
		values[i] = v.NodeValue(g)
		seen[i] = graph.ZerosLike(values[i])
		if d.factor > 0 {
			seen[i] = graph.MulScalar(values[i], d.factor)
		}
		v.SetNodeValue(seen[i])
	}
	apply()
	for i, d := range all {
		v := s.Store.GetVariable(d.path)
		v.SetNodeValue(graph.Add(values[i], graph.Sub(v.NodeValue(g), seen[i])))
	}
}

// checkDecays panics if nothing under a scope with a factor is decayed.
func (s *Step) checkDecays() {
	s.checkScales("ScaleDecay", s.Decays.Scales)
	for _, scale := range s.Decays.Scales {
		decays := func(o Objective) bool {
			return o.Decays && (Under(scale.Scope+"/", o.Scope) || Under(o.Scope+"/", scale.Scope))
		}
		if !slices.ContainsFunc(s.Objectives, decays) {
			panic(fmt.Errorf("trainer: ScaleDecay %q: the optimizer of the variables there has no weight decay: set it, or remove the option", scale.Scope))
		}
	}
}
