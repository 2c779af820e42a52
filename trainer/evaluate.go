package trainer

import (
	"context"
	"encoding/json"
	"fmt"

	"gonbatch/data"
)

// Validate computes the loss and the task's metrics over a dataset, every example once, and returns them on every rank under names such as
// "val/loss" and "val/accuracy". They are weighted by examples: exact for means, whatever the number of ranks.
func (t *Trainer) Validate(ctx context.Context, ds data.Dataset) (Metrics, error) {
	return t.evaluate(ctx, "val", ds)
}

// Test is Validate under the names "test/...".
func (t *Trainer) Test(ctx context.Context, ds data.Dataset) (Metrics, error) {
	return t.evaluate(ctx, "test", ds)
}

func (t *Trainer) evaluate(ctx context.Context, stage string, ds data.Dataset) (Metrics, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	batch := min(t.config.EvalBatchSize, ds.Len()) // So that the product can't overflow.
	if limit := min(t.config.LimitValBatches, ds.Len()); limit > 0 && stage == "val" {
		ds = data.First(ds, limit*batch*t.world.Size())
	}
	all, err := t.world.Evaluate(t.gomlx, ds, t.config.EvalBatchSize)
	if err != nil {
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

// validate is a validation in the middle of Fit: it may end the training, and the best is kept.
func (r *run) validate() error {
	if r.validation == nil {
		return nil
	}
	r.display.pause("validation")
	values, err := r.Trainer.evaluate(context.Background(), "val", r.validation)
	if err != nil {
		return err
	}
	r.validated = r.at.Step
	r.display.validation(r, values)
	reason, err := r.at.Stopping.observe(r.config.EarlyStopping, values)
	if err != nil {
		return err
	}
	if reason != "" {
		r.finish(reason)
	}
	if err := r.call(onValidationEnd); err != nil {
		return err
	}
	return r.saveIfBest(values)
}

// saveIfBest writes a checkpoint after a validation in the middle of an epoch that is the best so far; at its end there is one anyway.
func (r *run) saveIfBest(values Metrics) error {
	value, ok := values[r.config.Checkpoint.Monitor]
	if !ok && r.saver != nil && r.config.Checkpoint.Monitor != "val/loss" {
		return unknownMetric("checkpoint.monitor", r.config.Checkpoint.Monitor, values)
	}
	if !ok || !better(value, r.at.Best, r.config.Checkpoint.Mode, 0) {
		return nil
	}
	r.at.Best = (*number)(&value)
	if r.config.ValCheckInterval == 0 && r.config.Checkpoint.EverySteps == 0 && r.config.Checkpoint.Every == 0 {
		return nil
	}
	return r.save()
}
