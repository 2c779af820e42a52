package distributed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/data"
	"gonbatch/data/load"
	"gonbatch/internal/solo"
)

// Metric is the value of an evaluation metric over a whole dataset.
type Metric struct {
	Name, ShortName string
	Value           float64
}

// Metrics has the values in the order of the trainer's metrics, which begin with the mean loss.
type Metrics []Metric

// String returns a line such as "Mean Loss 0.0412, Mean Accuracy 0.9871".
func (m Metrics) String() string {
	parts := make([]string, len(m))
	for i, one := range m {
		parts[i] = fmt.Sprintf("%s %.4f", one.Name, one.Value)
	}
	return strings.Join(parts, ", ")
}

// Get returns the value of the metric with that name. It reports false if there is none.
func (m Metrics) Get(name string) (float64, bool) {
	for _, one := range m {
		if one.Name == name {
			return one.Value, true
		}
	}
	return 0, false
}

// Evaluator computes metrics of batches, as GoMLX's *train.Trainer does.
type Evaluator interface {
	Store() *model.Store
	// EvalMetrics returns the metrics. Their first is the mean loss. The slice may be changed
	// before the first step.
	EvalMetrics() []metric.Interface
	// EvalStep returns the values of the metrics so far. The batch is the evaluator's from then on.
	EvalStep(batch train.Batch) ([]*tensors.Tensor, error)
	DistributedEvalStep(s distributed.Strategy, devices []compute.DeviceNum, batch train.DistributedBatch) ([]*tensors.Tensor, error)
}

// Evaluate computes the trainer's evaluation metrics over the whole dataset, using every example
// once, and returns them on every rank. Each rank evaluates its part, at most batchSize examples at
// a time. Means are weighted by the number of examples or, if they divide by a sum over the data,
// such as the number of values that a mask leaves, by that. A metric.UpdateGo gets the results of
// all ranks. See CheckMetrics for the metrics that are refused. Evaluate is collective.
//
// If any rank's context ends, or any rank fails, all ranks stop together. If a context has ended,
// the error is context.Canceled.
func (w *World) Evaluate(ctx context.Context, trainer Evaluator, ds data.Dataset, batchSize int) (Metrics, error) {
	return w.EvaluateWith(ctx, trainer, ds, EvaluateOptions{BatchSize: batchSize})
}

// EvaluateOptions says how to cut a dataset into batches for an evaluation.
type EvaluateOptions struct {
	// BatchSize is the number of examples that a rank evaluates at once.
	BatchSize int
	// Loading says how far the loading is ahead: by no more than 512 MB, or one batch.
	Loading Loading
	// ModelParallel and Check are those of LoaderOptions.
	ModelParallel int
	Check         load.Check
}

// EvaluateWith is like Evaluate, with options.
func (w *World) EvaluateWith(ctx context.Context, trainer Evaluator, ds data.Dataset, o EvaluateOptions) (Metrics, error) {
	batchSize := o.BatchSize
	if batchSize < 1 {
		return nil, fmt.Errorf("distributed: evaluate %s with a batch size of %d: it must be at least 1", ds.Name(), batchSize)
	}
	if err := o.Loading.check(); err != nil {
		return nil, fmt.Errorf("distributed: evaluate %s: %w", ds.Name(), err)
	}
	if ds.Len() == 0 {
		return nil, fmt.Errorf("distributed: evaluate %s: it has no examples", ds.Name())
	}
	if err := w.CheckMetrics(trainer.EvalMetrics()); err != nil {
		return nil, err
	}
	w.sayOnce(data.Describe(ds))
	batchSize = min(batchSize, ds.Len()) // So that no sum overflows.
	begin, end := w.Rank()*ds.Len()/w.Size(), (w.Rank()+1)*ds.Len()/w.Size()
	mine, err := w.evaluatePart(ctx, trainer, part{data: ds, begin: begin, end: end, batchSize: batchSize, loading: o.Loading, modelParallel: o.ModelParallel, check: o.Check})
	if err := w.EndTogether(err); err != nil {
		return nil, fmt.Errorf("distributed: evaluate %s on rank %d: %w", ds.Name(), w.Rank(), err)
	}
	values, err := mine.overRanks(w)
	if err != nil {
		return nil, fmt.Errorf("distributed: evaluate %s: %w", ds.Name(), err)
	}
	metrics := make(Metrics, len(values))
	for i, m := range trainer.EvalMetrics() {
		if mine.inGo[i] != nil {
			if values[i], err = w.join(m.(metric.UpdateGo), trainer.Store().RootScope(), mine.inGo[i], ds.Len()); err != nil {
				return nil, fmt.Errorf("distributed: evaluate %s: the metric %q: %w", ds.Name(), m.Name(), err)
			}
		}
		metrics[i] = Metric{m.Name(), m.ShortName(), values[i]}
	}
	return metrics, nil
}

// evaluatePart evaluates one rank's examples.
func (w *World) evaluatePart(ctx context.Context, trainer Evaluator, p part) (*tally, error) {
	all, err := w.newTally(trainer)
	if err != nil {
		return nil, err
	}
	for v := range trainer.Store().IterVariables() {
		if isOwn(v) {
			v.SetTrainable(false) // Reset loads them from a checkpoint as trainable, and a rank without examples never builds them.
		}
	}
	for metrics, err := range w.evalSteps(trainer, p) {
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, errors.Join(context.Canceled, finalize(metrics))
		}
		if err := errors.Join(all.add(metrics), finalize(metrics)); err != nil {
			return nil, err
		}
	}
	return all, all.end(p.end - p.begin)
}

// evalSteps evaluates the part in batches. On several devices each batch is sharded over the rows
// of the mesh, except the few examples at the end that can't be divided: every row computes all of
// those.
func (w *World) evalSteps(trainer Evaluator, p part) iter.Seq2[[]*tensors.Tensor, error] {
	if w.devices == 1 {
		return iterate(batches(w, p, w.onDevice), func(_ int, batch train.Batch) ([]*tensors.Tensor, error) { return trainer.EvalStep(batch) })
	}
	m, err := w.meshFor(p.modelParallel)
	if err != nil {
		return failing[[]*tensors.Tensor](err)
	}
	run := func(_ int, batch train.DistributedBatch) ([]*tensors.Tensor, error) {
		return trainer.DistributedEvalStep(distributed.AutoSharding, w.assignment(), batch)
	}
	return func(yield func([]*tensors.Tensor, error) bool) {
		grouped, rest := p.split(m.data)
		for metrics, err := range iterate(batches(w, grouped, w.sharded(m)), run) {
			if !yield(metrics, err) || err != nil {
				return
			}
		}
		iterate(batches(w, rest, w.replicated(m)), run)(yield)
	}
}

// failing yields an error.
func failing[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}

// SpreadBatches is like ListedBatches, for a program of all devices that divide the weights among
// them: each device has the whole batch.
func (w *World) SpreadBatches(ds data.Dataset, lists iter.Seq[[]int], o EvaluateOptions) iter.Seq2[train.DistributedBatch, error] {
	m, err := w.meshFor(o.ModelParallel)
	if err != nil {
		return failing[train.DistributedBatch](err)
	}
	w.sayOnce(data.Describe(ds))
	return batches(w, part{data: ds, lists: lists, loading: o.Loading, check: o.Check}, w.replicated(m))
}

// Batches yields the examples from begin to end-1 of a dataset, in order and in batches, and loads
// the next ones meanwhile. Their inputs are on the first device. The batches belong to the caller.
func (w *World) Batches(ds data.Dataset, begin, end int, o EvaluateOptions) iter.Seq2[train.Batch, error] {
	return w.onFirstDevice(part{data: ds, begin: begin, end: end, batchSize: o.BatchSize, loading: o.Loading, check: o.Check})
}

// ListedBatches is like Batches, with a batch for each list of numbers of examples; so there is no
// BatchSize.
func (w *World) ListedBatches(ds data.Dataset, lists iter.Seq[[]int], o EvaluateOptions) iter.Seq2[train.Batch, error] {
	return w.onFirstDevice(part{data: ds, lists: lists, loading: o.Loading, check: o.Check})
}

func (w *World) onFirstDevice(p part) iter.Seq2[train.Batch, error] {
	w.sayOnce(data.Describe(p.data))
	return batches(w, p, func(b train.Batch) (train.Batch, error) {
		inputs, err := w.onDevice(train.Batch{Inputs: b.Inputs})
		b.Inputs = inputs.Inputs
		return b, err
	})
}

// batches loads the batches of a part.
func batches[B batch](w *World, p part, place placement[B]) iter.Seq2[B, error] {
	options := loadOptions[B](w, p.loading)
	options.Bytes = evalBytes
	loaded := load.Lists(p.numbers(), options, func(indices []int) (placed B, err error) {
		inputs, labels, err := load.Batch(p.data, indices, p.check)
		if err == nil {
			placed, err = place(train.Batch{Inputs: inputs, Labels: labels, Spec: p.specOf(labels)})
		}
		return placed, err
	})
	return func(yield func(B, error) bool) {
		for batch, err := range loaded {
			solo.Advance() // The parts of some ranks may take longer than those of others.
			if !yield(batch, err) {
				return
			}
		}
	}
}

// part is a part of a dataset: a range, in order, in batches of at most batchSize, or lists of
// examples, one for each batch.
type part struct {
	data          data.Dataset
	begin, end    int
	batchSize     int
	lists         iter.Seq[[]int] // Nil for a range.
	spec          any             // Programs are compiled for each.
	loading       Loading
	modelParallel int // As in LoaderOptions.
	check         load.Check
}

// withoutLabels is the spec of batches without labels, of a part with that spec: GoMLX's Trainer
// takes no other number of labels for a spec than in its first batch.
type withoutLabels struct{ spec any }

// specOf returns the spec of a batch with these labels.
func (p part) specOf(labels []*tensors.Tensor) any {
	if len(labels) == 0 {
		return withoutLabels{p.spec}
	}
	return p.spec
}

// numbers returns the examples of each batch.
func (p part) numbers() iter.Seq[[]int] {
	if p.lists != nil {
		return p.lists
	}
	return load.Cut(p.begin, p.end, p.batchSize)
}

// split divides a range into one whose batches can be divided among n devices, and the rest: all,
// where a batch has fewer than n.
func (p part) split(n int) (grouped, rest part) {
	grouped, rest = p, p
	grouped.batchSize = p.batchSize / n * n
	if grouped.batchSize > 0 {
		grouped.end = p.begin + (p.end-p.begin)/grouped.batchSize*grouped.batchSize
	} else {
		grouped.end = p.begin
	}
	rest.begin, rest.spec = grouped.end, "rest"
	return grouped, rest
}
