package trainer

import (
	"context"
	"errors"
	"maps"

	"gonbatch/checkpoint"
	"gonbatch/trainer/internal/stop"
)

// validationIsDue reports whether a validation is due after this update, as opposed to the end of
// the epoch.
func (r *run) validationIsDue() bool {
	every := int64(r.config.ValCheckInterval)
	return every > 0 && r.at.Step > 0 && r.at.Step%every == 0 && r.at.Validated != r.at.Step
}

// validateIfDue validates every ValCheckInterval updates, once per update.
func (r *run) validateIfDue() error {
	if !r.validationIsDue() {
		return nil
	}
	return r.validate()
}

// validate validates in the middle of Fit. The result may end the training, and the best checkpoint
// is kept. A request to stop interrupts the validation: then r.stopped is set, and the resumed
// training must validate. Without a validation set, the decisions depend on the training's own
// losses.
func (r *run) validate() error {
	if r.validation == nil && len(r.monitored()) == 0 {
		return nil
	}
	values, err := r.validated()
	if err != nil || r.stopped > stop.TimeIsUp {
		return err
	}
	r.at.Validated = r.at.Step
	if reason := r.at.Stopping.observe(r.config.EarlyStopping, values); reason != "" && r.pastMinimum() {
		r.finish(endedByEarlyStopping, reason)
	}
	if err := r.reduceRates(values); err != nil {
		return err
	}
	if r.validation != nil {
		if err := r.call(onValidationEnd); err != nil {
			return err
		}
	}
	r.noteBest(values)
	return nil
}

// validated computes and shows the metrics on which a validation bases its decisions.
func (r *run) validated() (Metrics, error) {
	values, err := r.newestLosses()
	if err != nil || r.validation == nil {
		return values, err
	}
	r.display.Pause("validation")
	computed, err := r.validateAll()
	if errors.Is(err, context.Canceled) {
		cause, _, _, voteErr := r.stop.Vote(false, 0)
		if r.stopped = cause; cause > stop.TimeIsUp || voteErr != nil {
			return nil, voteErr
		}
	}
	if err != nil {
		return nil, err
	}
	r.display.Validation(r.view(), computed.String())
	if values == nil {
		return computed, nil
	}
	maps.Copy(values, computed)
	return values, nil
}

// validateAll computes the metrics over all validation sets, and logs them.
func (r *run) validateAll() (Metrics, error) {
	defer r.recorder.During("validation")()
	all, err := r.measure(r.stop.Context(), valStage, r.validation)
	if err != nil {
		return nil, err
	}
	for _, v := range r.further {
		more, err := r.measure(r.stop.Context(), v.stage(), v.data)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, more)
	}
	r.keep(all)
	return all, r.log(all)
}

// noteBest makes a checkpoint due if this validation is the best so far.
func (r *run) noteBest(values Metrics) {
	c := r.config.Checkpoint
	if of := goal(c.Mode, c.Monitor); r.at.BestOf != of {
		r.at.Best, r.at.BestOf = nil, of
	}
	if value, ok := values[c.Monitor]; ok && better(value, r.at.Best, c.Mode, 0) {
		r.at.Best, r.saveDue = (*checkpoint.Number)(&value), true
	}
}
