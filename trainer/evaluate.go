package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"gonbatch/checkpoint"
	"gonbatch/data"
	"gonbatch/distributed"
	"gonbatch/internal/plural"
	"gonbatch/internal/unread"
	"gonbatch/trainer/internal/saved"
)

// Validate computes the loss and the task's metrics over a dataset, using every example once. It
// returns them on every rank, under names such as "val/loss" and "val/accuracy". They are weighted
// by the number of examples or, if they divide by a sum over the data, such as the number of values
// that a mask leaves, by that. So means are exact for any number of ranks.
//
// Before Fit, it uses the weights of the newest checkpoint, if there is one, and prints which
// weights it uses.
func (t *Trainer) Validate(ctx context.Context, ds data.Dataset) (m Metrics, err error) {
	defer func() { err = unread.Error("trainer.Validate", err) }()
	return t.evaluate(ctx, valStage, ds)
}

// Test is like Validate, with names such as "test/loss".
func (t *Trainer) Test(ctx context.Context, ds data.Dataset) (m Metrics, err error) {
	defer func() { err = unread.Error("trainer.Test", err) }()
	return t.evaluate(ctx, "test", ds)
}

func (t *Trainer) evaluate(ctx context.Context, stage string, ds data.Dataset) (Metrics, error) {
	if ds == nil {
		return nil, fmt.Errorf("trainer: %s: the dataset %w", t.config.Name, errNoDataset)
	}
	if err := t.ranksHave(ds); err != nil {
		return nil, fmt.Errorf("trainer: %s: %s: %w", t.config.Name, ds.Name(), err)
	}
	values, err := t.measure(ctx, stage, ds)
	if err != nil {
		return nil, err
	}
	if limit, option := t.evalLimit(stage); t.limited(ds, limit).Len() < ds.Len() {
		t.printf("%s%s: only %d of the %s of %s (%s: %d)\n", t.label(), stage, t.limited(ds, limit).Len(), plural.Of(ds.Len(), "example"), ds.Name(), option, limit)
	}
	t.keep(values)
	return values, t.log(values)
}

// errNoDataset is the error of a dataset that is nil.
var errNoDataset = errors.New("is nil: check the error of the function that makes it")

// measure computes metrics, and gives all ranks the same.
func (t *Trainer) measure(ctx context.Context, stage string, ds data.Dataset) (Metrics, error) {
	if err := t.ready(ctx, ds); err != nil {
		return nil, fmt.Errorf("trainer: %s: %w", t.config.Name, err)
	}
	if err := t.means.check(ds); err != nil {
		return nil, fmt.Errorf("trainer: %s: %s: %w", t.config.Name, ds.Name(), err)
	}
	limit, _ := t.evalLimit(stage)
	ds = t.limited(ds, limit)
	t.step.Eval.Forget()
	all, err := t.world.EvaluateWith(ctx, t.step.Evaluation, ds, distributed.EvaluateOptions{BatchSize: t.config.EvalBatchSize, Loading: distributed.Loading(t.config.Loader), ModelParallel: t.config.ModelParallel, Check: t.step.Eval.Check})
	if err != nil {
		return nil, fmt.Errorf("trainer: %s: %w", t.config.Name, placed(t.initial.Explain(err)))
	}
	if err := t.world.Together(t.checkModel()); err != nil {
		return nil, fmt.Errorf("trainer: %s: %w", t.config.Name, err)
	}
	values, err := t.agree(named(stage, all))
	if loss := stage + "/loss"; math.IsNaN(values[loss]) && !t.saidNaN {
		t.saidNaN = true
		t.printf("%swarning: %s is NaN: look for NaN or infinite numbers in the examples of %s, and in the weights\n", t.label(), loss, ds.Name())
	}
	return values, err
}

// evalLimit returns how many batches of a stage are used, 0 for all, and the option that says so.
func (t *Trainer) evalLimit(stage string) (batches int, option string) {
	batches, option = t.config.LimitTestBatches, "limit_test_batches"
	if strings.HasPrefix(stage, valStage) {
		batches, option = t.config.LimitValBatches, "limit_val_batches"
	}
	if t.config.FastDevRun {
		option = "fast_dev_run"
	}
	return batches, option
}

// limited returns a dataset's first examples: this many batches for each rank, or all if 0.
func (t *Trainer) limited(ds data.Dataset, batches int) data.Dataset {
	if batches == 0 || ds.Len() == 0 {
		return ds
	}
	return data.First(ds, product(batches, t.config.EvalBatchSize, t.world.Size()))
}

// agree gives all ranks rank 0's values, bit for bit, because they base decisions on them.
func (t *Trainer) agree(values Metrics) (Metrics, error) {
	theirs, err := saved.Broadcast(t.world, checkpoint.Metrics(values))
	return Metrics(theirs), err
}
