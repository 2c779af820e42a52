package trainer

import (
	"fmt"
	"strings"

	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/distributed"
	"gonbatch/internal/plural"
)

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
	return func(t *Trainer) { t.axes = append(t.axes, axisChoice{scope, axis}) }
}

// axisChoice is the axis of a scope.
type axisChoice struct {
	scope string
	axis  int
}

// leastDivided is the number of elements from which variables are divided by default: to transfer
// the results of a smaller one would take longer than to compute them.
var leastDivided = 1 << 14

// covers reports whether a variable is under the scope, or the one that the scope names.
func (d axisChoice) covers(path string) bool { return path == d.scope || under(path, d.scope) }

// follows reports whether a variable is named after one that the scope covers, as the state of
// optimizers is: "/AdamOptimizer/dense/weights_1st_moment".
func (d axisChoice) follows(path string) bool {
	i := strings.Index(path, d.scope)
	return i > 0 && (i+len(d.scope) == len(path) || strings.ContainsRune("/_", rune(path[i+len(d.scope)])))
}

// checkDivide checks the options.
func (t *Trainer) checkDivide() error {
	for _, d := range t.axes {
		if err := checkScope(d.scope); err != nil {
			return fmt.Errorf("Divide: %w", err)
		}
		if d.axis < Whole {
			return fmt.Errorf("Divide %q: the axis %d: it must be at least 0, or trainer.Whole", d.scope, d.axis)
		}
	}
	return nil
}

// axisOf returns the axis along which a variable is divided.
func (t *Trainer) axisOf(v *model.Variable) (int, error) {
	n := t.config.ModelParallel
	if d := closest(t.axes, func(d axisChoice) bool { return d.covers(v.Path()) }); d != nil {
		return d.of(v, n)
	}
	if d := closest(t.axes, func(d axisChoice) bool { return !v.Trainable && d.follows(v.Path()) }); d != nil {
		if axis, err := d.of(v, n); err == nil {
			return axis, nil
		}
	}
	return defaultAxis(v, n), nil
}

// closest returns the longest scope of those with a property; nil if there is none.
func closest(all []axisChoice, has func(axisChoice) bool) (best *axisChoice) {
	for i, d := range all {
		if has(d) && (best == nil || len(d.scope) > len(best.scope)) {
			best = &all[i]
		}
	}
	return best
}

// of returns the chosen axis of a variable, for n devices.
func (d axisChoice) of(v *model.Variable, n int) (int, error) {
	switch {
	case d.axis >= v.Shape().Rank():
		return Whole, nil
	case d.axis != Whole && v.Shape().Dimensions[d.axis]%n != 0:
		return Whole, fmt.Errorf("Divide %q: axis %d has %s, which model_parallel: %d doesn't divide: choose another axis, or trainer.Whole", d.scope, d.axis, plural.Of(v.Shape().Dimensions[d.axis], "element"), n)
	}
	return d.axis, nil
}

// defaultAxis returns the last axis of a large variable that n divides.
func defaultAxis(v *model.Variable, n int) int {
	if v.Shape().Rank() < 2 || v.Shape().Size() < leastDivided {
		return Whole
	}
	for axis := v.Shape().Rank() - 1; axis >= 0; axis-- {
		if v.Shape().Dimensions[axis]%n == 0 {
			return axis
		}
	}
	return Whole
}

// checkDivided panics if the model has no variable that an option is about.
func (s *stepper) checkDivided() {
	for _, d := range s.axes {
		found, has := false, false
		for v := range s.store.IterVariables() {
			if d.covers(v.Path()) {
				found, has = true, has || d.axis < v.Shape().Rank()
			}
		}
		switch {
		case !found:
			panic(fmt.Errorf("trainer: Divide: the model has no variable %q, and none under it", d.scope))
		case !has:
			panic(fmt.Errorf("trainer: Divide %q: no variable there has an axis %d", d.scope, d.axis))
		}
	}
}

// fitDevices lets a world use fewer devices for a batch that they can't share. Devices that have
// parts of the weights stay.
func fitDevices(c Config, w *distributed.World) error {
	if c.ModelParallel > 1 {
		return nil
	}
	return w.FitDevices(c.BatchSize)
}

// checkModelParallel compares the option with the strategy and the world.
func checkModelParallel(c Config, w *distributed.World) error {
	if c.ModelParallel <= 1 {
		return nil
	}
	if c.Strategy != "auto" && c.Strategy != "spmd" {
		return fmt.Errorf("model_parallel: %d with strategy %q: only spmd, several devices of one process, divides weights: leave one of the two out", c.ModelParallel, c.Strategy)
	}
	if err := w.CheckModelParallel(c.ModelParallel); err != nil {
		return fmt.Errorf("model_parallel: %w", err)
	}
	return nil
}
