package trainer

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/data"
	"gonbatch/data/load"
	"gonbatch/distributed"
)

// Predict runs the model over a dataset. Each rank processes a contiguous part, in batches of at
// most EvalBatchSize, on its first device, or on all devices if they have parts of the weights
// (Config.ModelParallel). For each batch, Predict calls f with the indices of the
// examples and the model's predictions, whose first axis is the example. f must not keep the
// tensors.
func (t *Trainer) Predict(ctx context.Context, ds data.Dataset, f func(indices []int, predictions []*tensors.Tensor) error) error {
	return t.PredictLabeled(ctx, ds, withoutLabels(f))
}

// PredictLabeled is like Predict, and also gives f the labels of the examples.
func (t *Trainer) PredictLabeled(ctx context.Context, ds data.Dataset, f func(indices []int, predictions, labels []*tensors.Tensor) error) error {
	if err := t.ready(ctx, nil); err != nil {
		return fmt.Errorf("trainer: %s: predict: %w", t.config.Name, err)
	}
	return t.predict(ctx, ds, t.world.Rank()*ds.Len()/t.world.Size(), (t.world.Rank()+1)*ds.Len()/t.world.Size(), f)
}

// PredictOnMain is like Predict, but rank 0 processes the whole dataset and other ranks do nothing.
// If they need rank 0 next, they wait as long as it takes, as for World.OnMain. Use it to draw
// samples.
func (t *Trainer) PredictOnMain(ctx context.Context, ds data.Dataset, f func(indices []int, predictions []*tensors.Tensor) error) error {
	if err := t.ready(ctx, nil); err != nil {
		return fmt.Errorf("trainer: %s: predict: %w", t.config.Name, err)
	}
	if !t.world.IsMain() {
		return nil
	}
	return t.world.Alone("PredictOnMain", func() error { return t.predict(ctx, ds, 0, ds.Len(), withoutLabels(f)) })
}

// useBatch receives the indices of a batch's examples, the predictions and the labels.
type useBatch func(indices []int, predictions, labels []*tensors.Tensor) error

func withoutLabels(f func([]int, []*tensors.Tensor) error) useBatch {
	return func(indices []int, predictions, _ []*tensors.Tensor) error { return f(indices, predictions) }
}

func (t *Trainer) predict(ctx context.Context, ds data.Dataset, begin, end int, f useBatch) error {
	if ds.Len() == 0 {
		return fmt.Errorf("trainer: %s: predict %s: it has no examples", t.config.Name, ds.Name())
	}
	if _, err := t.predictor(); err != nil {
		return err
	}
	r := predicted{what: fmt.Sprintf("trainer: %s: predict %s", t.config.Name, ds.Name()), begin: begin, end: end, size: min(t.config.EvalBatchSize, ds.Len())} // The sum can't overflow.
	options := distributed.EvaluateOptions{BatchSize: r.size, Loading: distributed.Loading(t.config.Loader), ModelParallel: t.config.ModelParallel}
	if t.stepper.division.Divides() {
		run := func(b train.DistributedBatch, indices []int) error { return t.predictSpread(b, indices, f) }
		return predictEach(ctx, r, t.world.SpreadBatches(ds, begin, end, options), run)
	}
	run := func(b train.Batch, indices []int) error { return t.predictBatch(b, indices, f) }
	return predictEach(ctx, r, t.world.Batches(ds, begin, end, options), run)
}

// predicted is a range of a dataset, in batches of a size.
type predicted struct {
	what             string // For errors.
	begin, end, size int
}

// predictEach runs the model over the batches of a range.
func predictEach[B interface{ Finalize() error }](ctx context.Context, r predicted, batches iter.Seq2[B, error], run func(B, []int) error) error {
	begin := r.begin
	for batch, err := range batches {
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), batch.Finalize())
		}
		indices := make([]int, min(r.size, r.end-begin))
		for i := range indices {
			indices[i] = begin + i
		}
		if err == nil {
			err = run(batch, indices)
		}
		if err != nil {
			return fmt.Errorf("%s, examples %d to %d: %w", r.what, begin, begin+len(indices)-1, err)
		}
		begin += len(indices)
	}
	return nil
}

// predictor returns the model's program, compiled once for each batch shape.
func (t *Trainer) predictor() (*model.Exec, error) {
	if t.predicts != nil {
		return t.predicts, nil
	}
	if t.task.model == nil {
		return nil, fmt.Errorf("trainer: %s: the task has no model to predict with: give it one with WithPredict", t.config.Name)
	}
	exec, err := model.NewExec(t.world.Backend(), t.store, func(scope *model.Scope, inputs []*graph.Node) []*graph.Node {
		scope.Store().SetTraining(inputs[0].Graph(), false)
		predictions := t.stepper.predictions(scope, t.stepper.precision.inputs(inputs), t.task.model)
		t.stepper.division.Tried()
		t.stepper.division.Outputs(inputs[0].Graph())
		return predictions
	})
	if err != nil {
		return nil, fmt.Errorf("trainer: %s: predict: %w", t.config.Name, err)
	}
	t.predicts = exec.SetMaxCache(anyShapes)
	return exec, nil
}

func (t *Trainer) predictBatch(batch train.Batch, indices []int, f useBatch) error {
	defer batch.Finalize() //nolint:errcheck // what isn't freed now is freed by the garbage collector
	args := make([]any, len(batch.Inputs))
	for i, input := range batch.Inputs {
		args[i] = input
	}
	predictions, err := t.predicts.Exec(args...)
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
	defer batch.Finalize() //nolint:errcheck // what isn't freed now is freed by the garbage collector
	if t.predicts.NumDevices() == 1 {
		t.stepper.division.Spread(t.predicts, batch)
	}
	args := make([]any, len(batch.Inputs))
	for i, input := range batch.Inputs {
		args[i] = input
	}
	outputs, err := t.predicts.DistributedExec(args...)
	if err != nil {
		return err
	}
	predictions := firstShards(outputs)
	defer func() {
		for _, output := range outputs {
			_ = output.FinalizeAll()
		}
	}()
	return t.usePredictions(indices, predictions, firstShards(batch.Labels), f)
}

// firstShards returns what the first device has of values that all devices have whole.
func firstShards(all []*dtensor.Tensor) []*tensors.Tensor {
	first := make([]*tensors.Tensor, len(all))
	for i, t := range all {
		first[i] = t.Shards()[0]
	}
	return first
}
