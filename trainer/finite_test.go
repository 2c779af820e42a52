package trainer_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestNoCheckpointOfNaN: an update that spoils the weights, while its loss is still a number, does
// not replace a good checkpoint.
func TestNoCheckpointOfNaN(t *testing.T) {
	for _, precision := range []string{"32-true", "bf16-true"} {
		dir := t.TempDir()
		fit := func(epochs int, of loss.LossFn) error {
			c := trainer.Config{MaxEpochs: epochs, LimitTrainBatches: 1, BatchSize: 12, Precision: precision, Checkpoint: trainer.CheckpointConfig{Dir: dir, Keep: 1, EverySteps: 1}}
			tr, _ := newTrainer(t, c, trainer.Supervised(plainNet, of, optimizer.Adam().Done()))
			// A table that is not trained may have NaN.
			if _, err := tr.Store().CreateVariable("/table", tensors.FromScalar(float32(math.NaN()))); err != nil {
				t.Fatal(err)
			}
			tr.Store().GetVariable("/table").SetTrainable(false)
			return tr.Fit(t.Context(), ranktest.Blobs(145), nil)
		}
		good := loss.SparseCategoricalCrossEntropyLogits
		bad := func(labels, predictions []*graph.Node) *graph.Node {
			value := graph.ReduceAllMean(good(labels, predictions))
			return graph.IdentityWithCustomGradient(value, func(_, v *graph.Node) *graph.Node { return graph.MulScalar(v, math.NaN()) })
		}
		if err := fit(1, good); err != nil {
			t.Fatal(err)
		}
		err := fit(2, bad)
		var diverged *trainer.DivergedError
		if !errors.As(err, &diverged) || !strings.Contains(err.Error(), "step 2 is not saved to "+dir) || !strings.Contains(err.Error(), "the weight /hidden/dense/biases is NaN after step 2") {
			t.Errorf("%s: got %v, want the weight and the step", precision, err)
		}
		if all, err := checkpoint.List(dir); err != nil || len(all) != 1 || all[0].Step != 1 {
			t.Errorf("%s: %v, %v: want the checkpoint of step 1", precision, all, err)
		}
	}
}
