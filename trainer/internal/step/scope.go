package step

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gomlx/compute/support/xslices"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Scale is a factor for the variables under a scope.
type Scale struct {
	Scope  string
	Factor float64
}

// CheckScope returns an error for what can't be a scope.
func CheckScope(scope string) error {
	if scope == "" || scope[0] != '/' || path.Clean(scope) != scope {
		return fmt.Errorf("the scope %q: it must be a path such as \"/body\"", scope)
	}
	return nil
}

// Under reports whether a variable is in a scope.
func Under(variable, scope string) bool {
	return strings.HasPrefix(variable, strings.TrimSuffix(scope, "/")+"/")
}

// freeze makes the variables of frozen scopes non-trainable while the graph of an update is built.
// undo makes them trainable again, so that the store's next trainer trains them.
func (s *Step) freeze(g *graph.Graph) (undo func()) {
	var all []*model.Variable
	for _, scope := range s.Frozen {
		withoutPerStepUpdates(s.Store, g, scope)
		before := len(all)
		var others []string
		for v := range s.Store.IterVariables() {
			switch {
			case v.Trainable && Under(v.Path(), scope):
				all = append(all, v)
			case v.Trainable:
				others = append(others, v.Path())
			}
		}
		if len(all) == before {
			panic(fmt.Errorf("trainer: Freeze: the model has no trainable variable under %q, only under %q", scope, Near(scope, others)))
		}
	}
	setTrainable(all, false)
	return func() { setTrainable(all, true) }
}

func setTrainable(all []*model.Variable, trainable bool) {
	for _, v := range all {
		v.SetTrainable(trainable)
	}
}

// factorOf returns the factor of a variable: that of the longest scope that it is in.
func factorOf(scales []Scale, path string) float64 {
	factor, longest := 1.0, 0
	for _, scale := range scales {
		if Under(path, scale.Scope) && len(scale.Scope) > longest {
			factor, longest = scale.Factor, len(scale.Scope)
		}
	}
	return factor
}

// valuesOf returns the values of variables in a graph.
func valuesOf(g *graph.Graph, variables []*model.Variable) []*graph.Node {
	return xslices.Map(variables, func(v *model.Variable) *graph.Node { return v.NodeValue(g) })
}

// rescale multiplies the change of each variable since before by the variable's factor.
func (s *Step) rescale(g *graph.Graph, variables []*model.Variable, before []*graph.Node) {
	for i, v := range variables {
		if factor := factorOf(s.Scales, v.Path()); factor != 1 {
			change := graph.Sub(v.NodeValue(g), before[i])
			v.SetNodeValue(graph.Add(before[i], graph.MulScalar(change, factor)))
		}
	}
}

// checkScales panics if a scope with a factor has no trainable variable.
func (s *Step) checkScales(option string, scales []Scale) {
	for _, scale := range scales {
		var all []string
		for v := range s.Store.IterVariables() {
			if v.Trainable {
				all = append(all, v.Path())
			}
		}
		if !slices.ContainsFunc(all, func(path string) bool { return Under(path, scale.Scope) }) {
			panic(fmt.Errorf("trainer: %s: the model has no variable that is trained under %q, only under %q", option, scale.Scope, Near(scale.Scope, all)))
		}
	}
}

// Near returns the scopes and variables that are where a scope was looked for: in the deepest scope
// above it that exists.
func Near(scope string, paths []string) (all []string) {
	above := path.Dir(scope)
	for above != "/" && !slices.ContainsFunc(paths, func(path string) bool { return Under(path, above) }) {
		above = path.Dir(above)
	}
	for _, path := range paths {
		if Under(path, above) {
			first, _, _ := strings.Cut(path[len(strings.TrimSuffix(above, "/"))+1:], "/")
			all = append(all, strings.TrimSuffix(above, "/")+"/"+first)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
