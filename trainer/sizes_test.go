package trainer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"gonbatch/trainer"
)

// TestRandomSizes tries random sizes of datasets and batches on one to five ranks: the metrics
// equal those of one rank, no collective differs, and nothing waits forever.
func TestRandomSizes(t *testing.T) {
	if os.Getenv(ordersFolder) != "" {
		obey[order](t)
		return
	}
	n := seeds(t, 25)
	for first := 0; first < n; first += chunk {
		t.Run(fmt.Sprint("seeds from ", first), func(t *testing.T) {
			w := newWorlds[order](t)
			for seed := first; seed < min(n, first+chunk); seed++ {
				compareSizes(t, w, uint64(seed))
			}
		})
	}
}

// compareSizes executes one order on one rank and on several.
func compareSizes(t *testing.T, w *worlds[order], seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	ranks := 2 + rng.IntN(4)
	batch := ranks * (1 + rng.IntN(8))
	o := order{Ranks: ranks, Examples: batch + rng.IntN(80), Validation: 1 + rng.IntN(60), Test: 1 + rng.IntN(60), Config: trainer.Config{
		MaxEpochs: 1, BatchSize: batch, EvalBatchSize: 1 + rng.IntN(30), AccumulateGradBatches: 1 + rng.IntN(4), LimitTrainBatches: rng.IntN(4),
		ValCheckInterval: rng.IntN(3), Seed: seed, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true},
	}}
	told := fmt.Sprintf("seed %d: %d ranks, %d examples in batches of %d, %d at most, %d for an update; %d to validate and %d to test in batches of %d", seed, ranks, o.Examples,
		batch, o.Config.LimitTrainBatches, o.Config.AccumulateGradBatches, o.Validation, o.Test, o.Config.EvalBatchSize)
	t.Log(told)
	several := w.do(t, overTCP(o.Ranks), o)
	o.Ranks = 1
	one := w.do(t, overTCP(1), o)[0]
	for rank, result := range several {
		if result.Error != "" || one.Error != "" || result.Step != one.Step || len(result.Metrics) != 2 {
			t.Fatalf("%s: rank %d: %+v; alone: %+v", told, rank, result, one)
		}
		for name, value := range result.Metrics {
			if d := math.Abs(value - one.Metrics[name]); !(d < 1e-4) {
				t.Errorf("%s: rank %d: %s is %g, alone %g", told, rank, name, value, one.Metrics[name])
			}
		}
	}
	if d := distance(several[0].Weights, one.Weights); !(d < 1e-4) {
		t.Errorf("%s: the weights differ by %g", told, d)
	}
}
