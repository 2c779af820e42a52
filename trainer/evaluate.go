package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gonbatch/data"
)

// Validate computes the loss and the task's metrics over a dataset, using every example once. It
// returns them on every rank, under names such as "val/loss" and "val/accuracy". They are weighted
// by examples, so means are exact for any number of ranks.
//
// Before Fit, it uses the weights of the newest checkpoint, if there is one, and prints that it
// does.
func (t *Trainer) Validate(ctx context.Context, ds data.Dataset) (Metrics, error) {
	return t.evaluate(ctx, "val", ds)
}

// Test is like Validate, with names such as "test/loss".
func (t *Trainer) Test(ctx context.Context, ds data.Dataset) (Metrics, error) {
	return t.evaluate(ctx, "test", ds)
}

func (t *Trainer) evaluate(ctx context.Context, stage string, ds data.Dataset) (Metrics, error) {
	if err := t.ready(ctx, ds); err != nil {
		return nil, fmt.Errorf("trainer: %s: %w", t.config.Name, err)
	}
	if limit := t.config.LimitValBatches; limit > 0 && stage == "val" && ds.Len() > 0 {
		ds = data.First(ds, product(limit, t.config.EvalBatchSize, t.world.Size()))
	}
	all, err := t.world.Evaluate(ctx, t.gomlx, ds, t.config.EvalBatchSize)
	if err != nil {
		return nil, fmt.Errorf("trainer: %s: %w", t.config.Name, err)
	}
	if err := t.world.Together(t.checkModel()); err != nil {
		return nil, fmt.Errorf("trainer: %s: %w", t.config.Name, err)
	}
	values, err := t.agree(named(stage, all))
	if err != nil {
		return nil, err
	}
	t.keep(values)
	return values, t.log(values)
}

// agree gives all ranks rank 0's values, to the bit: they decide by them.
func (t *Trainer) agree(values Metrics) (Metrics, error) {
	numbers := map[string]number{}
	for name, value := range values {
		numbers[name] = number(value)
	}
	mine, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	theirs, err := t.world.Broadcast(mine)
	if err != nil {
		return nil, err
	}
	clear(numbers)
	if err := json.Unmarshal(theirs, &numbers); err != nil {
		return nil, err
	}
	agreed := Metrics{}
	for name, value := range numbers {
		agreed[name] = float64(value)
	}
	return agreed, nil
}

// validateIfDue validates every ValCheckInterval updates, once for each.
func (r *run) validateIfDue() error {
	every := int64(r.config.ValCheckInterval)
	if every == 0 || r.at.Step == 0 || r.at.Step%every != 0 || r.at.Validated == r.at.Step {
		return nil
	}
	return r.validate()
}

// validate is a validation in the middle of Fit: it may end the training, and the best is kept. A
// request to stop ends it: then r.stopped is set, and the validation is still to be done when the
// training is resumed.
func (r *run) validate() error {
	if r.validation == nil {
		return nil
	}
	r.display.pause("validation")
	values, err := r.evaluate(r.stop.ctx, "val", r.validation)
	if errors.Is(err, context.Canceled) {
		cause, _, _, voteErr := r.stop.vote(false, 0)
		if r.stopped = cause; cause > timeIsUp || voteErr != nil {
			return voteErr
		}
	}
	if err != nil {
		return err
	}
	r.at.Validated = r.at.Step
	r.display.validation(r, values)
	reason, err := r.at.Stopping.observe(r.config.EarlyStopping, values)
	if err != nil {
		return err
	}
	if reason != "" {
		r.finish(endedByEarlyStopping, reason)
	}
	if err := r.call(onValidationEnd); err != nil {
		return err
	}
	return r.noteBest(values)
}

// noteBest has a checkpoint written of the best validation so far.
func (r *run) noteBest(values Metrics) error {
	value, ok := values[r.config.Checkpoint.Monitor]
	if !ok && r.saver != nil && r.config.Checkpoint.Monitor != "val/loss" {
		return unknownMetric("checkpoint.monitor", r.config.Checkpoint.Monitor, values)
	}
	if !ok || !better(value, r.at.Best, r.config.Checkpoint.Mode, 0) {
		return nil
	}
	r.at.Best, r.saveDue = (*number)(&value), true
	return nil
}
