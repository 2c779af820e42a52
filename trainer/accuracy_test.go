package trainer_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestMixedUp: with labels that are probabilities, validations have the loss and the accuracy that
// they have with the numbers of the classes; a network learns from mixed examples, on any number of
// ranks and devices.
func TestMixedUp(t *testing.T) { everywhere(t, testMixedUp) }

func testMixedUp(t *testing.T) {
	plain := ranktest.Blobs(240)
	mixed := data.MixUp(plain, 1, 0.2, ranktest.Classes)
	task := trainer.Supervised(plainNet, loss.CategoricalCrossEntropyLogits, optimizer.Adam().LearningRate(0.01).Done(), trainer.CategoricalAccuracy())
	c := trainer.Config{MaxEpochs: 20, BatchSize: 24, Seed: 1, Loggers: []string{"none"}}
	tr, _ := newTrainer(t, c, task)
	if err := tr.Fit(t.Context(), mixed, mixed); err != nil {
		t.Fatal(err)
	}
	got, err := tr.Test(t.Context(), mixed)
	if err != nil {
		t.Fatal(err)
	}
	sparse, _ := newTrainer(t, c, blobTask(plainNet), trainer.InitFromTrainer(tr))
	want, err := sparse.Test(t.Context(), plain)
	if err != nil {
		t.Fatal(err)
	}
	if got["test/accuracy"] != want["test/accuracy"] || got["test/accuracy"] < 0.9 || math.Abs(got["test/loss"]-want["test/loss"]) > 1e-5 {
		t.Errorf("with probabilities %v, with numbers %v", got, want)
	}
}
