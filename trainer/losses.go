package trainer

import (
	"math"

	"gonbatch/distributed"
	"gonbatch/internal/rundir"
	"gonbatch/trainer/internal/step"
)

// takeLosses takes a batch's losses and training metrics.
func (r *run) takeLosses(result step.Result) error {
	if result.LossScale != nil {
		if err := r.takeScale(result.LossScale); err != nil {
			return err
		}
	}
	if r.loss = result.Values[0]; r.at.Step == r.firstStep && r.firstLoss == 0 {
		r.firstLoss = r.loss
	}
	names := r.task.trainingLosses()
	for i, value := range result.Values {
		losses, finite, weight := r.at.losses(i), !math.IsNaN(value) && !math.IsInf(value, 0), 1.
		if result.Weights != nil {
			weight = result.Weights[i]
		}
		switch {
		case finite:
			losses.add(value, weight)
		case i >= len(names): // A metric of no number says nothing about the training.
		case result.LossScale == nil: // Else the update is skipped.
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

// leastScale ends a training run. Gradients that overflow with it are no matter of the scale. It is
// the --min-loss-scale of fairseq.
const leastScale = 1e-4

// takeScale takes the scale after a step, and ends a training run whose gradients overflow with any
// scale.
func (r *run) takeScale(state []float32) error {
	r.lossScale, r.skippedUpdates = float64(state[0]), float64(state[1])
	if r.lossScale < leastScale {
		return r.diverged("the loss scale, which halves whenever a gradient overflows in float16,", r.lossScale)
	}
	return nil
}
