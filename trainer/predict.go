package trainer

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/data"
)

// Predict runs the model over a dataset. Each rank processes a contiguous part, in batches of at
// most EvalBatchSize, on its first device. For each batch, Predict calls f with the indices of the
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
// Use it to draw samples.
func (t *Trainer) PredictOnMain(ctx context.Context, ds data.Dataset, f func(indices []int, predictions []*tensors.Tensor) error) error {
	if err := t.ready(ctx, nil); err != nil {
		return fmt.Errorf("trainer: %s: predict: %w", t.config.Name, err)
	}
	if !t.world.IsMain() {
		return nil
	}
	return t.predict(ctx, ds, 0, ds.Len(), withoutLabels(f))
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
	exec, err := t.predictor()
	if err != nil {
		return err
	}
	size := min(t.config.EvalBatchSize, ds.Len()) // The sum can't overflow.
	for ; begin < end; begin += size {
		if err := ctx.Err(); err != nil {
			return err
		}
		indices := make([]int, min(size, end-begin))
		for i := range indices {
			indices[i] = begin + i
		}
		if err := predictBatch(exec, ds, indices, t.checkUsed, f); err != nil {
			return fmt.Errorf("trainer: %s: predict %s, examples %d to %d: %w", t.config.Name, ds.Name(), begin, begin+len(indices)-1, err)
		}
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
		return t.stepper.precision.outputs(t.task.model(scope, t.stepper.precision.inputs(inputs)))
	})
	if err != nil {
		return nil, fmt.Errorf("trainer: %s: predict: %w", t.config.Name, err)
	}
	t.predicts = exec.SetMaxCache(anyShapes)
	return exec, nil
}

func predictBatch(exec *model.Exec, ds data.Dataset, indices []int, check func() error, f useBatch) error {
	inputs, labels, err := ds.Batch(indices)
	if err != nil {
		return err
	}
	defer finalize(labels)
	args := make([]any, len(inputs))
	for i, input := range inputs {
		args[i] = input
	}
	defer finalize(inputs)
	predictions, err := exec.Exec(args...)
	if err != nil {
		return err
	}
	defer finalize(predictions)
	if err := check(); err != nil {
		return err
	}
	return f(indices, predictions, labels)
}

// finalize frees tensors at once, without waiting for the garbage collector.
func finalize(all []*tensors.Tensor) {
	for _, t := range all {
		_ = t.FinalizeAll()
	}
}
