package trainer

import (
	"errors"
	"math"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed"
	"gonbatch/internal/rundir"
)

// takeLosses reads a batch's losses and frees its metrics: the loss, GoMLX's moving average of it,
// the losses of the objectives, the training metrics, and the gradients if they are logged.
func (r *run) takeLosses(metrics []*tensors.Tensor) error {
	if r.stepper.division.Divides() {
		if err := popStepOutput(&metrics).FinalizeAll(); err != nil { // It is 0.
			return err
		}
	}
	if r.stepper.withHistograms {
		r.gradients = popStepOutput(&metrics)
	}
	if r.stepper.lossScale != nil {
		scale := popStepOutput(&metrics)
		if err := errors.Join(r.takeScale(scale), scale.FinalizeAll()); err != nil {
			return err
		}
	}
	weights, err := takeWeights(popStepOutput(&metrics))
	if err != nil {
		return err
	}
	names := []string{"the loss", ""}
	for _, o := range r.task.objectives {
		names = append(names, "the loss of "+o.Name)
	}
	ofLosses := 1 + len(r.task.trainingLosses())
	for i, m := range metrics {
		value := shapes.ConvertTo[float64](m.Value())
		if err := m.FinalizeAll(); err != nil {
			return err
		}
		if i == 1 {
			continue
		}
		if i == 0 {
			if r.loss = value; r.at.Step == r.firstStep && r.firstLoss == 0 {
				r.firstLoss = value
			}
		}
		losses, finite, weight := r.at.losses(i), !math.IsNaN(value) && !math.IsInf(value, 0), 1.
		if weights != nil {
			weight = weights[i]
		}
		switch {
		case finite:
			losses.add(value, weight)
		case i >= ofLosses: // A metric of no number says nothing about the training.
		case r.stepper.lossScale == nil: // Else the update is skipped.
			losses.add(value, weight)
			return r.diverged(names[i], value)
		}
	}
	return nil
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
