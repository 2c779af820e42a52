package trainer

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// rates sets the learning rates of the objectives' optimizers before each update. An optimizer's own rate is known once it has built its
// part of a graph; it is a part of the training's progress, so a training that goes on keeps it.
type rates struct {
	store      *model.Store
	schedule   Schedule // Nil: they never change.
	objectives []Objective
	base       map[string]number // By scope.
	built      bool
}

func (r *rates) variable(o Objective) *model.Variable {
	return r.store.GetVariable(model.JoinPath(model.JoinPath(o.Scope, optimizer.Scope), optimizer.ParamLearningRate))
}

// learn notes the optimizers' own rates.
func (r *rates) learn() error {
	r.built = true
	for _, o := range r.objectives {
		v := r.variable(o)
		if _, known := r.base[o.Scope]; known || v == nil {
			continue
		}
		value, err := v.Value()
		if err != nil {
			return fmt.Errorf("trainer: learning rate of %q: %w", o.Name, err)
		}
		r.base[o.Scope] = number(shapes.ConvertTo[float64](value.Value()))
	}
	return nil
}

// set sets the rates for an update.
func (r *rates) set(step, total int) error {
	if r.schedule == nil || !r.built { // To look for a variable before would make it, out of its order.
		return nil
	}
	factor := r.schedule.Factor(step, total)
	if factor-factor != 0 && (total == 0 || step < total) {
		return fmt.Errorf("trainer: the schedule's factor for update %d of %d is %g: it must be a finite number", step+1, total, factor)
	}
	for _, o := range r.objectives {
		v := r.variable(o)
		base, known := r.base[o.Scope]
		if v == nil || !known {
			continue // Before the first update, or an optimizer without a rate.
		}
		value, err := tensors.FromAnyValue(shapes.CastAsDType(float64(base)*factor, v.DType()))
		if err != nil {
			return fmt.Errorf("trainer: the learning rate of %q: %w", o.Name, err)
		}
		if err := v.SetValue(value); err != nil {
			return fmt.Errorf("trainer: set the learning rate of %q to %g: %w", o.Name, float64(base)*factor, err)
		}
	}
	return nil
}

// at are the rates for an update, by metric name.
func (r *rates) at(step, total int) map[string]float64 {
	factor := 1.0
	if r.schedule != nil {
		factor = r.schedule.Factor(step, total)
	}
	all := map[string]float64{}
	for _, o := range r.objectives {
		if base, known := r.base[o.Scope]; known {
			all[metricName("train", "learning_rate", o.Name)] = float64(base) * factor
		}
	}
	return all
}
