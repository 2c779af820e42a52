package trainer_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/solo"
	"gonbatch/trainer"
)

// TestPredictWhileTraining: predictions use the current weights, though the program is compiled
// only once.
func TestPredictWhileTraining(t *testing.T) { everywhere(t, testPredictWhileTraining) }

func testPredictWhileTraining(t *testing.T) {
	var first []float32
	builds := 0
	task := blobTask(func(scope *model.Scope, x *graph.Node) *graph.Node {
		builds++
		return plainNet(scope, x)
	})
	predict := func(tr *trainer.Trainer, n int) []float32 {
		var all []float32
		err := tr.PredictOnMain(t.Context(), ranktest.Blobs(n), func(_ []int, predictions []*tensors.Tensor) error {
			all = append(all, tensors.MustCopyFlatData[float32](predictions[0])...)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return all
	}
	each := trainer.Callback{Name: "predict", EpochEnd: func(e *trainer.Event) error {
		now := predict(e.Trainer, 3)
		if e.Trainer.World().IsMain() && slices.Equal(now, first) {
			t.Errorf("epoch %d: the predictions are those of the epoch before", e.Epoch)
		}
		first = now
		return nil
	}}
	tr, _ := newTrainer(t, trainer.Config{MaxEpochs: 3, BatchSize: 12, EvalBatchSize: 1000}, task, trainer.WithCallbacks(each))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	if now := predict(tr, 3); !slices.Equal(now, first) {
		t.Errorf("after the last epoch %v, then %v", first, now)
	}
	if builds != 2 {
		t.Errorf("the model was built %d times, want 2: once to train, once to predict", builds)
	}
}

// TestMainWorksAlone: while rank 0 uses predictions, or waits for a checkpoint to be written, the
// other ranks learn that it works alone.
func TestMainWorksAlone(t *testing.T) {
	tr, _ := newTrainer(t, trainer.Config{MaxEpochs: 1, BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir()}}, blobTask(plainNet))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	err := tr.PredictOnMain(t.Context(), ranktest.Blobs(3), func([]int, []*tensors.Tensor) error {
		if work, _ := solo.Now(); work.What != "PredictOnMain" {
			t.Errorf("while it uses them, its work is %q", work.What)
		}
		return nil
	})
	if work, _ := solo.Now(); err != nil || work.What != "" {
		t.Errorf("afterwards, its work is %q; %v", work.What, err)
	}
	start := time.Now()
	err = tr.WaitForCheckpoints()
	if _, moved := solo.Now(); err != nil || moved.Before(start) {
		t.Errorf("waiting for checkpoints isn't work of its own; %v", err)
	}
}

// TestManySizes: a program is compiled for more batch sizes than GoMLX keeps by default.
func TestManySizes(t *testing.T) {
	linear := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(scope.In("y"), graph.Reshape(x, x.Shape().Dimensions[0], -1), false, ranktest.Classes)
	}
	tr, _ := newTrainer(t, trainer.Config{}, trainer.Supervised(linear, loss.SparseCategoricalCrossEntropyLogits, plainSGD(1)))
	for n := 1; n <= 34; n++ {
		if _, err := tr.Test(t.Context(), ranktest.Blobs(n)); err != nil {
			t.Fatal(err)
		}
		if err := tr.Predict(t.Context(), ranktest.Blobs(n), func([]int, []*tensors.Tensor) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSizesWithoutLimit: "everything at once" may be written as the largest number.
func TestSizesWithoutLimit(t *testing.T) {
	c := trainer.Config{BatchSize: 12, EvalBatchSize: math.MaxInt, LimitValBatches: math.MaxInt}
	tr, _ := newTrainer(t, c, blobTask(plainNet))
	if err := tr.Fit(t.Context(), ranktest.Blobs(24), ranktest.Blobs(40)); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := tr.Predict(t.Context(), ranktest.Blobs(40), func(indices []int, _ []*tensors.Tensor) error { n += len(indices); return nil })
	if err != nil || n != 40 {
		t.Errorf("%d predictions, %v", n, err)
	}
}
