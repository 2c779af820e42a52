package step

import (
	"fmt"
	"strings"

	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/distributed"
	"gonbatch/internal/plural"
)

// AxisChoice is the axis along which the variables under a scope are divided.
type AxisChoice struct {
	Scope string
	Axis  int
}

// LeastDivided is the number of elements from which variables are divided by default: to transfer
// the results of a smaller one would take longer than to compute them.
var LeastDivided = 1 << 14

// covers reports whether a variable is under the scope, or the one that the scope names.
func (d AxisChoice) covers(path string) bool { return path == d.Scope || Under(path, d.Scope) }

// follows reports whether a variable is named after one that the scope covers, as the state of
// optimizers is: "/AdamOptimizer/dense/weights_1st_moment".
func (d AxisChoice) follows(path string) bool {
	i := strings.Index(path, d.Scope)
	return i > 0 && (i+len(d.Scope) == len(path) || strings.ContainsRune("/_", rune(path[i+len(d.Scope)])))
}

// axisOf returns the axis along which a variable is divided.
func (s *Step) axisOf(v *model.Variable) (int, error) {
	n := s.ModelParallel
	if d := closest(s.Axes, func(d AxisChoice) bool { return d.covers(v.Path()) }); d != nil {
		return d.of(v, n)
	}
	if d := closest(s.Axes, func(d AxisChoice) bool { return !v.Trainable && d.follows(v.Path()) }); d != nil {
		if axis, err := d.of(v, n); err == nil {
			return axis, nil
		}
	}
	return defaultAxis(v, n), nil
}

// closest returns the longest scope of those with a property; nil if there is none.
func closest(all []AxisChoice, has func(AxisChoice) bool) (best *AxisChoice) {
	for i, d := range all {
		if has(d) && (best == nil || len(d.Scope) > len(best.Scope)) {
			best = &all[i]
		}
	}
	return best
}

// of returns the chosen axis of a variable, for n devices.
func (d AxisChoice) of(v *model.Variable, n int) (int, error) {
	switch {
	case d.Axis >= v.Shape().Rank():
		return distributed.Whole, nil
	case d.Axis != distributed.Whole && v.Shape().Dimensions[d.Axis]%n != 0:
		return distributed.Whole, fmt.Errorf("trainer.Divide %q: axis %d has %s, which model_parallel: %d doesn't divide: choose another axis, or trainer.Whole", d.Scope, d.Axis, plural.Of(v.Shape().Dimensions[d.Axis], "element"), n)
	}
	return d.Axis, nil
}

// defaultAxis returns the last axis of a large variable that n divides.
func defaultAxis(v *model.Variable, n int) int {
	if v.Shape().Rank() < 2 || v.Shape().Size() < LeastDivided {
		return distributed.Whole
	}
	for axis := v.Shape().Rank() - 1; axis >= 0; axis-- {
		if v.Shape().Dimensions[axis]%n == 0 {
			return axis
		}
	}
	return distributed.Whole
}

// checkDivided panics if the model has no variable that an option is about.
func (s *Step) checkDivided() {
	for _, d := range s.Axes {
		found, has := false, false
		for v := range s.Store.IterVariables() {
			if d.covers(v.Path()) {
				found, has = true, has || d.Axis < v.Shape().Rank()
			}
		}
		switch {
		case !found:
			panic(fmt.Errorf("trainer: Divide: the model has no variable %q, and none under it", d.Scope))
		case !has:
			panic(fmt.Errorf("trainer: Divide %q: no variable there has an axis %d", d.Scope, d.Axis))
		}
	}
}
