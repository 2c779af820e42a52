package distributed_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
)

// TestRounds: a program that leaves its job and joins it again continues with the same model, which
// becomes the same on any number of ranks and devices.
func TestRounds(t *testing.T) {
	if ranktest.InRank() {
		store, main := model.NewStore(), false
		store.SetParam("/"+model.ParamInitialSeed, int64(42))
		for range 2 {
			main = round(t, store)
		}
		if main {
			writeOutcome(t, outcome{Weights: weights(t, store)})
		}
		return
	}
	want, _ := run(t, ranktest.Torchrun, 1)
	if len(want.Weights) == 0 {
		t.Fatal("no weights")
	}
	for _, other := range []struct {
		ranks   int
		devices string
	}{{1, "2"}, {2, "1"}} {
		got, _ := run(t, ranktest.Torchrun, other.ranks, "GONBATCH_DEVICES="+other.devices)
		if diff := cmp.Diff(want.Weights, got.Weights, cmpopts.EquateApprox(1e-4, 1e-6)); diff != "" {
			t.Errorf("the weights differ on %d ranks with %s devices each (-one +several):\n%s", other.ranks, other.devices, diff)
		}
	}
}

// round trains an epoch in a world of its own, and reports whether this is rank 0.
func round(t *testing.T, store *model.Store) bool {
	t.Helper()
	w, err := distributed.Init()
	if err != nil {
		t.Fatal(err)
	}
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(scope.In("logits"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, ranktest.Classes)
	}
	sgd := w.Optimizer(optimizer.StochasticGradientDescent().WithLearningRate(0.05).WithDecay(false).Done())
	trainer := train.NewTrainer(w.Backend(), store, net, loss.SparseCategoricalCrossEntropyLogits, sgd, nil, nil)
	loader, err := w.Loader(ranktest.Blobs(144), distributed.LoaderOptions{BatchSize: 12, Shuffle: true, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	if err := epoch(w, trainer, loader); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.IsMain()
}
