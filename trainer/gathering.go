package trainer

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/checkpoint"
	"gonbatch/data"
	"gonbatch/data/load"
	"gonbatch/distributed"
	"gonbatch/internal/plural"
	"gonbatch/internal/unread"
)

// PredictOnMain is like Predict, but f is called on rank 0 only, with the predictions for the whole
// dataset: in order, in batches of EvalBatchSize, whatever the number of ranks. The ranks predict
// these batches in turn, so the dataset must be the same on all of them. Rank 0 gets the batches
// one after the other.
//
// PredictOnMain is collective, but f must not call anything collective. f may take as long as it
// needs, as in World.OnMain. If a rank fails, or its context ends, all ranks return an error.
func (t *Trainer) PredictOnMain(ctx context.Context, ds data.Dataset, f func(indices []int, predictions []*tensors.Tensor) error) (err error) {
	defer func() { err = unread.Error("trainer.PredictOnMain", err) }()
	return t.predictOnMain(ctx, ds, f)
}

func (t *Trainer) predictOnMain(ctx context.Context, ds data.Dataset, f func(indices []int, predictions []*tensors.Tensor) error) error {
	ds, err := t.toPredict(ctx, ds, func(trained meaning, ds data.Dataset) error {
		if err := t.ranksHave(ds); err != nil {
			return err
		}
		return trained.checkInputs(ds)
	})
	if err != nil {
		return err
	}
	g := &gathering{world: t.world, examples: ds.Len(), size: min(t.config.EvalBatchSize, ds.Len()), use: f}
	if err := g.end(ctx, t.predict(ctx, ds, g.share(), g.add)); err != nil {
		return fmt.Errorf("trainer: %s: predict %s: %w", t.config.Name, ds.Name(), placed(err))
	}
	return nil
}

// gathering brings the predictions of all ranks to rank 0, in rounds that are collective: in each,
// every rank has a batch, in order of rank, as long as there are any.
type gathering struct {
	world          *distributed.World
	examples, size int // Of the dataset, and of a batch.
	use            func(indices []int, predictions []*tensors.Tensor) error
	next           int   // The first example of the next round.
	failed         error // Ended it on all ranks.
}

// share yields the examples of this rank's batches.
func (g *gathering) share() iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for begin := g.world.Rank() * g.size; begin < g.examples; begin += g.world.Size() * g.size {
			if !yield(g.batch(begin)) {
				return
			}
		}
	}
}

// batch returns the examples of the batch that begins with one.
func (g *gathering) batch(begin int) []int {
	return slices.Collect(load.Cut(begin, min(begin+g.size, g.examples), g.size))[0]
}

// add ends a round with this rank's predictions.
func (g *gathering) add(indices []int, predictions, _ []*tensors.Tensor) error {
	return g.round(encoded(len(indices), predictions))
}

// round ends a round with what this rank has predicted, nil for nothing, or with the error that
// prevented it.
func (g *gathering) round(data []byte, err error) error {
	first := g.next
	g.next += g.world.Size() * g.size
	if g.failed = g.world.EndTogether(err); g.failed != nil {
		return g.failed
	}
	g.failed = g.world.GatherOnMain(data, func(rank int, data []byte) error {
		if len(data) == 0 {
			return nil
		}
		predictions, err := decoded(data)
		if err != nil {
			return fmt.Errorf("the predictions of rank %d: %w", rank, err)
		}
		defer load.Finalize(predictions)
		indices := g.batch(first + rank*g.size)
		return g.world.Alone("PredictOnMain", func() error { return g.use(indices, predictions) })
	})
	return g.failed
}

// end ends the rounds that are left, and returns the error that has ended them on all ranks, if
// any. err is that of this rank's share.
func (g *gathering) end(ctx context.Context, err error) error {
	for g.failed == nil && g.next < g.examples { // The others have more batches, or this rank has failed.
		_ = g.round(nil, cmp.Or(err, canceled(ctx)))
	}
	return cmp.Or(g.failed, err)
}

// encoded returns the predictions for n examples as a safetensors file.
func encoded(n int, predictions []*tensors.Tensor) ([]byte, error) {
	all := map[string]*tensors.Tensor{}
	for i, p := range predictions {
		shape := p.Shape()
		if shape.Rank() == 0 || shape.Dimensions[0] != n {
			return nil, fmt.Errorf("the model's prediction %d for %s is %s: its first axis must be the example", i, plural.Of(n, "example"), shape)
		}
		all["/"+strconv.Itoa(i)] = p
	}
	write, err := checkpoint.TensorFile(all, nil)
	if err != nil {
		return nil, fmt.Errorf("the model's predictions, from /0 on: %w", err)
	}
	var file bytes.Buffer
	err = write(&file)
	return file.Bytes(), err
}

// decoded is the inverse of encoded.
func decoded(file []byte) ([]*tensors.Tensor, error) {
	all, _, err := checkpoint.ReadTensors(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	predictions := make([]*tensors.Tensor, len(all))
	for i := range predictions {
		predictions[i] = all["/"+strconv.Itoa(i)]
	}
	return predictions, nil
}
