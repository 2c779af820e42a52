package trainer

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Freeze keeps the variables under the scopes, such as "/body", as they are: no gradients are
// computed for them, and no optimizer changes them. The statistics of batch normalization under the
// scopes still follow the data. Fit fails if the model has no trainable variable under a scope.
func Freeze(scopes ...string) Option {
	return func(t *Trainer) { t.frozen = append(t.frozen, scopes...) }
}

// ScaleRate multiplies the learning rate of the variables under a scope by a factor, as PyTorch's
// parameter groups do. If a variable is under two scopes, the longer one counts. ScaleRate scales
// the whole change of an update, so it is exact for optimizers whose change is proportional to the
// rate, such as SGD and Adam. The learning rate in the logs doesn't include the factor.
func ScaleRate(scope string, factor float64) Option {
	return func(t *Trainer) { t.scales = append(t.scales, scale{scope, factor}) }
}

// scale multiplies the learning rate of a scope.
type scale struct {
	scope  string
	factor float64
}

func (t *Trainer) checkScopes() error {
	for _, scope := range t.frozen {
		if err := checkScope(scope); err != nil {
			return fmt.Errorf("Freeze: %w", err)
		}
	}
	for _, s := range t.scales {
		if err := checkScope(s.scope); err != nil {
			return fmt.Errorf("ScaleRate: %w", err)
		}
		if !(s.factor > 0) || math.IsInf(s.factor, 1) {
			return fmt.Errorf("ScaleRate %q: the factor must be more than 0 and finite, got %g: use Freeze for variables that must not change", s.scope, s.factor)
		}
	}
	return errors.Join(t.decays.check(t.task.objectives), t.checkDivide())
}

func checkScope(scope string) error {
	if scope == "" || scope[0] != '/' || path.Clean(scope) != scope {
		return fmt.Errorf("the scope %q: it must be a path such as \"/body\"", scope)
	}
	return nil
}

// under reports whether a variable is in a scope.
func under(variable, scope string) bool {
	return strings.HasPrefix(variable, strings.TrimSuffix(scope, "/")+"/")
}

// topScopes returns the first elements of paths.
func topScopes(paths []string) (all []string) {
	for _, path := range paths {
		if end := strings.IndexByte(path[1:], '/'); end >= 0 {
			path = path[:end+1]
		}
		all = append(all, path)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// freeze makes the variables of frozen scopes non-trainable while the graph of an update is built.
// undo makes them trainable again, so that the store's next trainer trains them.
func (s *stepper) freeze(g *graph.Graph) (undo func()) {
	var all []*model.Variable
	for _, scope := range s.frozen {
		withoutPerStepUpdates(s.store, g, scope)
		before := len(all)
		var others []string
		for v := range s.store.IterVariables() {
			switch {
			case v.Trainable && under(v.Path(), scope):
				all = append(all, v)
			case v.Trainable:
				others = append(others, v.Path())
			}
		}
		if len(all) == before {
			panic(fmt.Errorf("trainer: Freeze: the model has no trainable variable under %q, only under %q", scope, near(scope, others)))
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
func factorOf(scales []scale, path string) float64 {
	factor, longest := 1.0, 0
	for _, scale := range scales {
		if under(path, scale.scope) && len(scale.scope) > longest {
			factor, longest = scale.factor, len(scale.scope)
		}
	}
	return factor
}

// valuesOf returns the values of variables in a graph.
func valuesOf(g *graph.Graph, variables []*model.Variable) []*graph.Node {
	all := make([]*graph.Node, len(variables))
	for i, v := range variables {
		all[i] = v.NodeValue(g)
	}
	return all
}

// rescale multiplies the change of each variable since before by the variable's factor.
func (s *stepper) rescale(g *graph.Graph, variables []*model.Variable, before []*graph.Node) {
	for i, v := range variables {
		if factor := factorOf(s.scales, v.Path()); factor != 1 {
			change := graph.Sub(v.NodeValue(g), before[i])
			v.SetNodeValue(graph.Add(before[i], graph.MulScalar(change, factor)))
		}
	}
}

// checkScales panics if a scope with a factor has no trainable variable.
func (s *stepper) checkScales(option string, scales []scale) {
	for _, scale := range scales {
		var all []string
		for v := range s.store.IterVariables() {
			if v.Trainable {
				all = append(all, v.Path())
			}
		}
		if !slices.ContainsFunc(all, func(path string) bool { return under(path, scale.scope) }) {
			panic(fmt.Errorf("trainer: %s: the model has no variable that is trained under %q, only under %q", option, scale.scope, near(scale.scope, all)))
		}
	}
}

// near returns the scopes and variables that are where a scope was looked for: in the deepest scope
// above it that exists.
func near(scope string, paths []string) (all []string) {
	above := path.Dir(scope)
	for above != "/" && !slices.ContainsFunc(paths, func(path string) bool { return under(path, above) }) {
		above = path.Dir(above)
	}
	for _, path := range paths {
		if under(path, above) {
			first, _, _ := strings.Cut(path[len(strings.TrimSuffix(above, "/"))+1:], "/")
			all = append(all, strings.TrimSuffix(above, "/")+"/"+first)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// scalesText returns scopes with their factors, as text. The order of the options doesn't matter,
// except of two with the same scope.
func scalesText(scales []scale) string {
	all := make([]string, len(scales))
	sorted := slices.SortedStableFunc(slices.Values(scales), func(a, b scale) int { return strings.Compare(a.scope, b.scope) })
	for i, s := range sorted {
		all[i] = fmt.Sprintf("%s %g", s.scope, s.factor)
	}
	return strings.Join(all, ", ")
}

// scopeParams returns the hyper-parameters of the options about scopes.
func (t *Trainer) scopeParams() map[string]any {
	params := t.decays.params()
	if len(t.frozen) > 0 {
		params["freeze"] = strings.Join(slices.Sorted(slices.Values(t.frozen)), ", ")
	}
	if len(t.scales) > 0 {
		params["scale_rate"] = scalesText(t.scales)
	}
	return params
}
