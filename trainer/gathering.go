package trainer

import (
	"cmp"
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/distributed"
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
	if ds == nil {
		return fmt.Errorf("trainer: %s: predict: the dataset %w", t.config.Name, errNoDataset)
	}
	if err := t.ready(ctx, nil); err != nil {
		return fmt.Errorf("trainer: %s: predict: %w", t.config.Name, err)
	}
	if err := t.ranksHave(ds); err != nil {
		return fmt.Errorf("trainer: %s: predict %s: %w", t.config.Name, ds.Name(), err)
	}
	if err := t.means.checkInputs(ds); err != nil {
		return fmt.Errorf("trainer: %s: predict %s: %w", t.config.Name, ds.Name(), err)
	}
	ds = t.limited(ds, t.config.LimitPredictBatches)
	turns := turns{examples: ds.Len(), ranks: t.world.Size(), size: min(t.config.EvalBatchSize, ds.Len())}
	alone := func(indices []int, predictions []*tensors.Tensor) error {
		return t.world.Alone("PredictOnMain", func() error { return f(indices, predictions) })
	}
	g := &gathering{world: t.world, rounds: turns.rounds(), collector: collector{size: turns.size, use: alone}}
	if err := g.end(t.predict(ctx, ds, turns.of(t.world.Rank()), g.add)); err != nil {
		return fmt.Errorf("trainer: %s: predict %s: %w", t.config.Name, ds.Name(), placed(err))
	}
	return nil
}

// gathering brings the predictions of all ranks to rank 0, in rounds that are collective.
type gathering struct {
	world     *distributed.World
	rounds    int // Left.
	collector collector
	failed    error // Ended it on all ranks.
}

// add ends a round with this rank's predictions.
func (g *gathering) add(indices []int, predictions, _ []*tensors.Tensor) error {
	own, err := predictedFrom(len(indices), predictions)
	return g.round(own, err)
}

// round ends a round with what this rank has predicted, or with the error that prevented it.
func (g *gathering) round(own predicted, err error) error {
	g.rounds--
	var data []byte
	if err == nil {
		data, err = own.encoded()
	}
	if g.failed = g.world.EndTogether(err); g.failed != nil {
		return g.failed
	}
	g.failed = g.world.GatherOnMain(data, func(_ int, data []byte) error {
		theirs, err := decoded(data)
		if err != nil {
			return err
		}
		return g.collector.add(theirs)
	})
	return g.failed
}

// end ends the rounds that are left, and returns the error that has ended them on all ranks, if
// any. err is that of this rank's share.
func (g *gathering) end(err error) error {
	for g.failed == nil && g.rounds > 0 { // The others have more examples, or this rank has failed.
		_ = g.round(predicted{}, err)
	}
	if g.failed != nil || err != nil {
		return cmp.Or(g.failed, err)
	}
	if g.world.IsMain() {
		err = g.collector.flush()
	}
	return g.world.Together(err)
}
