package trainer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/checkpoint"
	"gonbatch/data"
	"gonbatch/data/load"
	"gonbatch/distributed"
	"gonbatch/internal/plural"
	"gonbatch/internal/unread"
)

// PredictOnMain is like Predict, but f is called on rank 0 only, with the predictions for the whole
// dataset: in order, in batches of EvalBatchSize, whatever the number of ranks. All ranks predict,
// each its share of the examples, so the dataset must be the same on all of them. Rank 0 gets the
// batches one after the other.
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
	if err := g.end(ctx, t.predict(ctx, ds, g.own, g.add)); err != nil {
		return fmt.Errorf("trainer: %s: predict %s: %w", t.config.Name, ds.Name(), placed(err))
	}
	return nil
}

// gathering brings the predictions of all ranks to rank 0, in rounds that are collective. In each,
// every rank has a batch, in order of rank. In the last one, several ranks share a batch if there
// are fewer batches than ranks.
type gathering struct {
	world          *distributed.World
	examples, size int // Of the dataset, and of a batch.
	use            func(indices []int, predictions []*tensors.Tensor) error
	next           int    // The first example of the next round.
	failed         error  // Ended it on all ranks.
	parts          []part // Of a batch, on rank 0.
}

// part has the predictions for some examples.
type part struct {
	from, to    int
	predictions []*tensors.Tensor
}

// batches returns the number of batches in the round that begins with an example, and how many
// ranks share one.
func (g *gathering) batches(first int) (n, ranks int) {
	n = min(g.world.Size(), (g.examples-first-1)/g.size+1)
	return n, g.world.Size() / n
}

// share returns which examples a rank predicts in a round.
func (g *gathering) share(first, rank int) (from, to int) {
	n, ranks := g.batches(first)
	if rank/ranks >= n {
		return 0, 0
	}
	begin := first + rank/ranks*g.size
	end := min(begin+g.size, g.examples)
	each := (end-begin-1)/ranks + 1
	from = min(begin+rank%ranks*each, end)
	return from, min(from+each, end)
}

// own yields this rank's examples of each round.
func (g *gathering) own(yield func([]int) bool) {
	for first := 0; first < g.examples; first += g.world.Size() * g.size {
		from, to := g.share(first, g.world.Rank())
		for indices := range load.Cut(from, to, g.size) {
			if !yield(indices) {
				return
			}
		}
	}
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
	_, ranks := g.batches(first)
	g.failed = g.world.GatherOnMain(data, func(rank int, data []byte) error {
		if len(data) > 0 {
			predictions, err := decoded(data)
			if err != nil {
				return fmt.Errorf("the predictions of rank %d: %w", rank, err)
			}
			from, to := g.share(first, rank)
			g.parts = append(g.parts, part{from, to, predictions})
		}
		if (rank+1)%ranks > 0 {
			return nil
		}
		return g.useBatch()
	})
	return g.failed
}

// useBatch uses the batch whose parts are there. If their shapes differ, it uses one after the
// other.
func (g *gathering) useBatch() error {
	batches := g.parts
	g.parts = nil
	defer func() {
		for _, p := range batches {
			load.Finalize(p.predictions)
		}
	}()
	if len(batches) > 1 && !slices.ContainsFunc(batches, func(p part) bool { return !p.fits(batches[0]) }) {
		whole, err := joined(batches)
		if err != nil {
			return err
		}
		batches = append(batches, whole)
		return g.usePart(whole)
	}
	for _, p := range batches {
		if err := g.usePart(p); err != nil {
			return err
		}
	}
	return nil
}

func (g *gathering) usePart(p part) error {
	indices := slices.Collect(load.Cut(p.from, p.to, g.size))[0]
	return g.world.Alone("PredictOnMain", func() error { return g.use(indices, p.predictions) })
}

// fits reports whether two parts can be put together.
func (p part) fits(other part) bool {
	return slices.EqualFunc(p.predictions, other.predictions, func(a, b *tensors.Tensor) bool {
		return a.DType() == b.DType() && slices.Equal(a.Shape().Dimensions[1:], b.Shape().Dimensions[1:])
	})
}

// joined puts parts together.
func joined(parts []part) (whole part, err error) {
	whole.from, whole.to = parts[0].from, parts[len(parts)-1].to
	for i, p := range parts[0].predictions {
		shape := p.Shape().Clone()
		shape.Dimensions[0] = whole.to - whole.from
		all := tensors.FromShape(shape)
		whole.predictions = append(whole.predictions, all)
		if shape.IsZeroSize() {
			continue
		}
		var readErr error
		writeErr := all.MutableBytes(func(to []byte) {
			for _, p := range parts {
				readErr = errors.Join(readErr, p.predictions[i].ConstBytes(func(from []byte) { to = to[copy(to, from):] }))
			}
		})
		if err := errors.Join(readErr, writeErr); err != nil {
			return whole, err
		}
	}
	return whole, nil
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
	if of := (*checkpoint.TensorError)(nil); errors.As(err, &of) {
		return nil, fmt.Errorf("the model's prediction %s %s", strings.TrimPrefix(of.Path, "/"), of.Reason)
	}
	if err != nil {
		return nil, err
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
