package trainer

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/xslices"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/checkpoint"
)

// rates sets the learning rates of the objectives' optimizers before each update. An optimizer's
// own rate is known once it has built its part of a graph. Checkpoints contain it, so that a
// resumed training notices that its rate has changed.
type rates struct {
	store      *model.Store
	schedule   Schedule // Nil: they never change.
	objectives []Objective
	base       checkpoint.Metrics // By scope.
	reduced    float64            // A factor besides the schedule's: that of "plateau", or 1.
	built      bool
}

func ratePath(o Objective) string {
	return model.JoinPath(model.JoinPath(o.Scope, optimizer.Scope), optimizer.ParamLearningRate)
}

func (r *rates) variable(o Objective) *model.Variable { return r.store.GetVariable(ratePath(o)) }

// paths returns the paths of the rates' variables.
func (r *rates) paths() []string { return xslices.Map(r.objectives, ratePath) }

// forget deletes the rates of an earlier training run in the same store. GoMLX's optimizers would
// use them instead of their own.
func (r *rates) forget() error {
	for _, path := range r.paths() {
		if r.store.GetVariable(path) == nil {
			continue
		}
		if err := r.store.DeleteVariable(path); err != nil {
			return fmt.Errorf("trainer: delete the learning rate of an earlier training run, %s: %w", path, err)
		}
	}
	return nil
}

// learn records the optimizers' own rates when the program of an update is built for the first
// time. In a resumed training the variable gets the checkpoint's value, which callbacks may have
// changed. If the program now has another rate, that one applies, and learn prints it.
func (r *rates) learn(restored *checkpoint.Snapshot, printf func(string, ...any)) error {
	if r.built {
		return nil
	}
	r.built = true
	for _, o := range r.objectives {
		if err := r.learnOne(o, restored, printf); err != nil {
			return fmt.Errorf("trainer: %s: %w", paramName(o, learningRate), err)
		}
	}
	return nil
}

func (r *rates) learnOne(o Objective, restored *checkpoint.Snapshot, printf func(string, ...any)) error {
	v := r.variable(o)
	if v == nil {
		return nil
	}
	value, err := v.Value()
	if err != nil {
		return err
	}
	own := shapes.ConvertTo[float64](value.Value())
	if !(own > 0) {
		return fmt.Errorf("it is %g: it must be above 0", own)
	}
	before, known := r.base[o.Scope]
	r.base[o.Scope] = own
	switch {
	case known && own != before:
		printf("the learning rate is %g now, in the checkpoint it is %g\n", own, before)
	case known && restored != nil && restored.Tensors[ratePath(o)] != nil:
		clone, err := restored.Tensors[ratePath(o)].LocalClone()
		if err != nil {
			return err
		}
		return v.SetValue(clone)
	}
	return nil
}

// factor returns the factor of the optimizers' own rates for an update.
func (r *rates) factor(step, total int) float64 {
	if r.schedule == nil {
		return 1
	}
	if total > 0 {
		step = min(step, total-1) // After the last update, its rate is shown.
	}
	return r.schedule.Factor(step, total) * r.reduced
}

// areZero reports whether the schedule's factor is 0 for all updates of a training.
func (r *rates) areZero(total int) bool {
	for step := range total {
		if r.factor(step, total) != 0 {
			return false
		}
	}
	return true
}

// set sets the rates for an update.
func (r *rates) set(step, total int) error {
	if r.schedule == nil || !r.built { // Looking for a variable before that would create it, out of order.
		return nil
	}
	factor := r.factor(step, total)
	if (factor-factor != 0 || factor < 0) && (total == 0 || step < total) { // Below 0 it would climb up the loss.
		return fmt.Errorf("trainer: the schedule's factor for update %d of %d is %g: it must be a finite number of at least 0", step+1, total, factor)
	}
	for _, o := range r.objectives {
		v := r.variable(o)
		base, known := r.base[o.Scope]
		if v == nil || !known {
			continue // Before the first update, or the optimizer has no rate.
		}
		value, err := tensors.FromAnyValue(shapes.CastAsDType(base*factor, v.DType()))
		if err != nil {
			return fmt.Errorf("trainer: the learning rate of %q: %w", o.Name, err)
		}
		if err := v.SetValue(value); err != nil {
			return fmt.Errorf("trainer: set the learning rate of %q to %g: %w", o.Name, base*factor, err)
		}
	}
	return nil
}

// at returns the rates for an update, by metric name.
func (r *rates) at(step, total int) map[string]float64 {
	factor := r.factor(step, total)
	all := map[string]float64{}
	for _, o := range r.objectives {
		if base, known := r.base[o.Scope]; known {
			all[metricName("train", "learning_rate", o.Name)] = float64(base) * factor
		}
	}
	return all
}
