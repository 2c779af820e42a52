package trainer

import (
	"math"

	"gonbatch/distributed"
	"gonbatch/internal/rundir"
)

// takeLosses takes a batch's losses and training metrics.
func (r *run) takeLosses(step stepResult) error {
	if step.scale != nil {
		if err := r.takeScale(step.scale); err != nil {
			return err
		}
	}
	if r.loss = step.values[0]; r.at.Step == r.firstStep && r.firstLoss == 0 {
		r.firstLoss = r.loss
	}
	names := r.task.trainingLosses()
	for i, value := range step.values {
		losses, finite, weight := r.at.losses(i), !math.IsNaN(value) && !math.IsInf(value, 0), 1.
		if step.weights != nil {
			weight = step.weights[i]
		}
		switch {
		case finite:
			losses.add(value, weight)
		case i >= len(names): // A metric of no number says nothing about the training.
		case step.scale == nil: // Else the update is skipped.
			losses.add(value, weight)
			return r.diverged(r.lossName(i), value)
		}
	}
	return nil
}

// lossName returns the name of a loss for an error.
func (r *run) lossName(i int) string {
	if i == 0 {
		return "the loss"
	}
	return "the loss of " + r.task.objectives[i-1].Name
}

// diverged aborts all ranks: the others would wait for this one forever, or train on with weights
// that it has spoiled.
func (r *run) diverged(name string, value float64) error {
	err := &DivergedError{Name: name, Value: value, Step: r.at.Step, Rank: r.world.Rank(), Host: hostname()}
	if r.world.Size() > 1 {
		r.failed(err)
		r.world.Abort(&distributed.FailureError{Kind: rundir.NaN, Err: err})
	}
	return err
}
