package trainer_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// swinging returns a training run whose momentum carries it past the best weights and back.
func swinging(dir string) (trainer.Config, trainer.Task) {
	c := trainer.Config{BatchSize: 12, MaxEpochs: 8, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: dir}}
	return c, pulled(trainer.SGD{LearningRate: 0.1, Momentum: 0.95})
}

// TestLoadBest: after Fit, and in a program that only tests, the weights are those of the best
// validation, and Test and Predict use them.
func TestLoadBest(t *testing.T) { everywhere(t, testLoadBest) }

func testLoadBest(t *testing.T) {
	c, task := swinging(t.TempDir())
	best, bestLoss, last := []float64(nil), math.Inf(1), 0.0
	record := trainer.Callback{Name: "record", ValidationEnd: func(e *trainer.Event) error {
		if last = e.Metrics["val/loss"]; last < bestLoss {
			best, bestLoss = trainedFloats(t, e.Trainer, "/pull"), last
		}
		return nil
	}}
	tr, _ := newTrainer(t, c, task, trainer.WithCallbacks(record))
	if err := tr.Fit(t.Context(), ranktest.Blobs(48), ranktest.Blobs(40)); err != nil {
		t.Fatal(err)
	}
	if !(bestLoss < last) {
		t.Fatalf("the last validation is the best one, %g", last)
	}
	check := func(tr *trainer.Trainer) {
		if err := tr.LoadBest(); err != nil {
			t.Fatal(err)
		}
		metrics, err := tr.Test(t.Context(), ranktest.Blobs(40))
		if err != nil || math.Abs(metrics["test/loss"]-bestLoss) > 1e-6 {
			t.Errorf("the loss is %v, %v, want %g", metrics["test/loss"], err, bestLoss)
		}
		if got := trainedFloats(t, tr, "/pull"); !slices.Equal(got, best) {
			t.Error("the weights aren't those of the best validation")
		}
		if got := predicted(t, tr); math.Abs(got-best[0]) > 1e-6 {
			t.Errorf("predicted with the weight %g, want %g", got, best[0])
		}
	}
	check(tr)
	again, out := newTrainer(t, c, task)
	check(again)
	if want := fmt.Sprintf("the best by val/loss (%.6g), from ", bestLoss); again.World().IsMain() && !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out)
	}
	if err := again.Fit(t.Context(), ranktest.Blobs(48), ranktest.Blobs(40)); err == nil || !strings.Contains(err.Error(), "call Fit before LoadBest") {
		t.Errorf("Fit after LoadBest: %v", err)
	}
}

// predicted returns the first weight of pulled, computed from its prediction for an image.
func predicted(t *testing.T, tr *trainer.Trainer) float64 {
	t.Helper()
	var value float64
	err := tr.Predict(t.Context(), ranktest.Blobs(3), func(indices []int, predictions []*tensors.Tensor) error {
		inputs, _, err := ranktest.Blobs(3).Batch(indices)
		if err != nil {
			return err
		}
		image := tensors.MustCopyFlatData[float32](inputs[0])
		value = float64(tensors.MustCopyFlatData[float32](predictions[0])[0]) + float64(image[0])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestLoadBestRefuses: without a best checkpoint, the error gives the reason and the fix.
func TestLoadBestRefuses(t *testing.T) {
	whole, task := swinging("")
	for name, c := range map[string]struct {
		change func(*trainer.Config)
		want   string
	}{
		"no folder":     {func(*trainer.Config) {}, "no folder of checkpoints: set checkpoint.dir"},
		"off":           {func(c *trainer.Config) { c.Checkpoint.Off = true }, "checkpoint.off is set"},
		"not validated": {func(c *trainer.Config) { c.Checkpoint.Dir = t.TempDir() }, `has the metric "val/loss": give Fit a validation set`},
		"a part of an epoch": {func(c *trainer.Config) {
			c.Checkpoint.Dir, c.Checkpoint.Monitor, c.MaxSteps = t.TempDir(), "train/loss", 1
		}, `has the metric "train/loss": it is measured at the end of an epoch, and the training ended before: train longer`},
	} {
		config := whole
		c.change(&config)
		tr, _ := newTrainer(t, config, task)
		mustFit(t, tr)
		if err := tr.LoadBest(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	whole.Checkpoint.Dir = t.TempDir()
	early := trainer.Callback{Name: "early", EpochEnd: func(e *trainer.Event) error { return e.Trainer.LoadBest() }}
	tr, _ := newTrainer(t, whole, task, trainer.WithCallbacks(early))
	if err := tr.Fit(t.Context(), ranktest.Blobs(48), nil); err == nil || !strings.Contains(err.Error(), "Fit is training now") {
		t.Errorf("in the middle of a training run: %v", err)
	}
	whole.FastDevRun = true
	tr, out := newTrainer(t, whole, task)
	mustFit(t, tr)
	if err := tr.LoadBest(); err != nil || !strings.Contains(out.String(), "LoadBest keeps the weights") {
		t.Errorf("a development run: %v\n%s", err, out)
	}
}
