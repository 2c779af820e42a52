package trainer_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/memory"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/models/cnn"
	"gonbatch/trainer"
)

// blocksNet has 8 blocks of 3 layers, one with batch normalization, and dropout. With checkpoints,
// the backward pass computes the values in a block again instead of keeping them.
func blocksNet(checkpoints bool) func(*model.Scope, *graph.Node) *graph.Node {
	return func(scope *model.Scope, x *graph.Node) *graph.Node {
		x = layers.Dense(scope.In("wide"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, 128)
		for block := range 8 {
			if checkpoints {
				x = x.Checkpoint()
			}
			in := scope.In("block%d", block)
			for i := range 3 {
				x = graph.Tanh(layers.Dense(in.In("layer%d", i), x, true, 128))
			}
			if block == 3 {
				x = cnn.BatchNorm(in.In("norm"), x).Done()
			}
			x = layers.DropoutStatic(in.In("dropout"), x, 0.1)
		}
		if checkpoints {
			x = x.StopCheckpoint()
		}
		return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
	}
}

// TestGradientCheckpointing: GoMLX's gradient checkpoints (Node.Checkpoint; Chen et al., Training
// Deep Nets with Sublinear Memory Cost, 2016) work in a training run, also with the all-reduces of
// batch normalization and with dropout: the weights stay the same, and a step needs less memory.
func TestGradientCheckpointing(t *testing.T) {
	tier.Long(t)
	if !ranktest.InRank() {
		for _, ranks := range []int{1, 2} {
			// Not the options for quick compilation.
			out, err := ranktest.Start(t, ranktest.Torchrun, ranks, []string{"GONBATCH_DEVICES=1", "XLA_FLAGS=--xla_dump_to=" + t.TempDir()})
			if err != nil {
				t.Errorf("%d ranks: %v\n%s", ranks, err, out)
			}
		}
		return
	}
	fit := func(checkpoints bool) (peak int64, weights []float64) {
		peak = math.MaxInt64
		look := trainer.Callback{Name: "look", BatchEnd: func(e *trainer.Event) error {
			if took := memory.Peak(); e.Step > 1 {
				peak = min(peak, took)
			}
			return nil
		}}
		c := trainer.Config{MaxSteps: 3, BatchSize: 2048 * world(t).Size(), Seed: 3, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}
		tr, _ := newTrainer(t, c, trainer.Supervised(blocksNet(checkpoints), loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().Done()), trainer.WithCallbacks(look))
		if err := tr.Fit(t.Context(), ranktest.Blobs(c.BatchSize), nil); err != nil {
			t.Fatal(err)
		}
		return peak, trainedFloats(t, tr, "/")
	}
	all, want := fit(false)
	few, got := fit(true)
	fmt.Printf("rank %d: the peak is %d MiB without checkpoints, %d MiB with them\n", world(t).Rank(), all>>20, few>>20)
	if few > all*2/3 {
		t.Errorf("the peak is %d MiB without checkpoints, %d MiB with them", all>>20, few>>20)
	}
	if off := distance(got, want) / distance(want, make([]float64, len(want))); !(off < 1e-4) {
		t.Errorf("with checkpoints, the weights differ by %g of their norm", off)
	}
}
