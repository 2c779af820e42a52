package trainer

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/gomlx/compute/support/xslices"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/data"
	"gonbatch/data/load"
	"gonbatch/distributed"
	"gonbatch/internal/unread"
)

// Predict runs the model over a dataset. Each rank processes a contiguous part, in batches of at
// most EvalBatchSize, on its first device, or on all devices if they have parts of the weights
// (Config.ModelParallel). For each batch, Predict calls f with the indices of the
// examples and the model's predictions, whose first axis is the example. f must not keep the
// tensors.
func (t *Trainer) Predict(ctx context.Context, ds data.Dataset, f func(indices []int, predictions []*tensors.Tensor) error) (err error) {
	defer func() { err = unread.Error("trainer.Predict", err) }()
	return t.predictPart(ctx, ds, meaning.checkInputs, func(indices []int, predictions, _ []*tensors.Tensor) error { return f(indices, predictions) })
}

// PredictLabeled is like Predict, and also gives f the labels of the examples.
func (t *Trainer) PredictLabeled(ctx context.Context, ds data.Dataset, f func(indices []int, predictions, labels []*tensors.Tensor) error) (err error) {
	defer func() { err = unread.Error("trainer.PredictLabeled", err) }()
	return t.predictPart(ctx, ds, meaning.check, f)
}

// predictPart runs the model over this rank's part of a dataset that same accepts beside the
// training set.
func (t *Trainer) predictPart(ctx context.Context, ds data.Dataset, same func(meaning, data.Dataset) error, f useBatch) error {
	ds, err := t.toPredict(ctx, ds, same)
	if err != nil {
		return err
	}
	begin, end := t.world.Rank()*ds.Len()/t.world.Size(), (t.world.Rank()+1)*ds.Len()/t.world.Size()
	if err := t.predict(ctx, ds, load.Cut(begin, end, t.config.EvalBatchSize), f); err != nil {
		return fmt.Errorf("trainer: %s: predict %s: %w", t.config.Name, ds.Name(), placed(err))
	}
	return nil
}

// toPredict gives the model its weights, and returns the part of a dataset to predict. same accepts
// the dataset beside the training set.
func (t *Trainer) toPredict(ctx context.Context, ds data.Dataset, same func(meaning, data.Dataset) error) (data.Dataset, error) {
	if ds == nil {
		return nil, fmt.Errorf("trainer: %s: predict: the dataset %w", t.config.Name, errNoDataset)
	}
	if err := t.ready(ctx, nil); err != nil {
		return nil, fmt.Errorf("trainer: %s: predict: %w", t.config.Name, err)
	}
	if err := same(t.means, ds); err != nil {
		return nil, fmt.Errorf("trainer: %s: predict %s: %w", t.config.Name, ds.Name(), err)
	}
	return t.limited(ds, t.config.LimitPredictBatches), nil
}

// useBatch receives the indices of a batch's examples, the predictions and the labels.
type useBatch func(indices []int, predictions, labels []*tensors.Tensor) error

// predict runs the model over batches of a dataset, given by the indices of their examples.
func (t *Trainer) predict(ctx context.Context, ds data.Dataset, lists iter.Seq[[]int], f useBatch) error {
	if ds.Len() == 0 {
		return errors.New("it has no examples")
	}
	if t.task.model == nil {
		return errors.New("the task has no model to predict with: give it one with WithPredict")
	}
	t.step.Predict.Forget()
	options := distributed.EvaluateOptions{Loading: distributed.Loading(t.config.Loader), ModelParallel: t.config.ModelParallel, Check: t.step.Predict.Check}
	if t.step.Divides() {
		run := func(b train.DistributedBatch, indices []int) error { return t.predictSpread(b, indices, f) }
		return predictEach(ctx, lists, t.world.SpreadBatches(ds, lists, options), run)
	}
	run := func(b train.Batch, indices []int) error { return t.predictBatch(b, indices, f) }
	return predictEach(ctx, lists, t.world.ListedBatches(ds, lists, options), run)
}

// predictEach runs the model over batches with these lists of examples.
func predictEach[B interface{ Finalize() error }](ctx context.Context, lists iter.Seq[[]int], batches iter.Seq2[B, error], run func(B, []int) error) error {
	next, stop := iter.Pull(lists)
	defer stop()
	for batch, err := range batches {
		if canceled := canceled(ctx); canceled != nil {
			return errors.Join(canceled, batch.Finalize())
		}
		indices, _ := next()
		if err == nil {
			err = run(batch, indices)
		}
		if failed, ok := errors.AsType[*load.Error](err); ok {
			return failed // It names the example.
		}
		if err != nil {
			return fmt.Errorf("examples %d to %d: %w", indices[0], indices[len(indices)-1], err)
		}
	}
	return nil
}

// canceled returns the error of a context that has ended.
func canceled(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return errors.Join(context.Canceled, ctx.Err())
}

func (t *Trainer) predictBatch(batch train.Batch, indices []int, f useBatch) error {
	defer load.Finalize(batch.Labels)
	predictions, err := t.step.Prediction.Run(train.Batch{Inputs: batch.Inputs})
	if err != nil {
		return err
	}
	return t.usePredictions(indices, predictions, batch.Labels, f)
}

func (t *Trainer) usePredictions(indices []int, predictions, labels []*tensors.Tensor, f useBatch) error {
	defer load.Finalize(predictions)
	if err := t.checkUsed(); err != nil {
		return err
	}
	return f(indices, predictions, labels)
}

// predictSpread is predictBatch on devices that have parts of the weights.
func (t *Trainer) predictSpread(batch train.DistributedBatch, indices []int, f useBatch) error {
	labels := train.DistributedBatch{Labels: batch.Labels}
	defer labels.Finalize() //nolint:errcheck // what isn't freed now is freed by the garbage collector
	predictions, err := t.step.Prediction.RunSharded(train.DistributedBatch{Inputs: batch.Inputs})
	if err != nil {
		return err
	}
	return t.usePredictions(indices, predictions, firstShards(batch.Labels), f)
}

// firstShards returns what the first device has of values that all devices have whole.
func firstShards(all []*dtensor.Tensor) []*tensors.Tensor {
	return xslices.Map(all, func(t *dtensor.Tensor) *tensors.Tensor { return t.Shards()[0] })
}
