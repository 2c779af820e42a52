package trainer_test

import (
	"errors"
	"testing"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestAugmentedTraining: on any number of ranks and devices, and after a restart in the middle, a
// training run sees the images of its epochs, and validations see the original ones.
func TestAugmentedTraining(t *testing.T) { everywhere(t, testAugmentedTraining) }

func testAugmentedTraining(t *testing.T) {
	const epochs = 6
	ds := data.Augment(ranktest.Blobs(12), 3, data.RandomCrop(2), data.RandomFlip(0.5))
	var targets [][]float64
	for epoch := range epochs {
		targets = append(targets, meanOf(t, ds, epoch))
	}
	sgd := trainer.SGD{LearningRate: 0.3, Momentum: 0.5}
	c := trainer.Config{BatchSize: 12, MaxEpochs: epochs, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir()}}
	tr, _ := newTrainer(t, c, pulled(sgd), killAt(4))
	if err := tr.Fit(t.Context(), ds, nil); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	tr, _ = newTrainer(t, c, pulled(sgd))
	if err := tr.Fit(t.Context(), ds, nil); err != nil {
		t.Fatal(err)
	}
	want := published(sgd, epochs, targets, 0, func(int) float64 { return sgd.LearningRate })
	if d := distance(want, trainedFloats(t, tr, "/pull")); !(d < 1e-5) {
		t.Errorf("the weights are %g from those of the augmented images", d)
	}
	augmented, err := tr.Test(t.Context(), ds)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := tr.Test(t.Context(), ranktest.Blobs(12)); err != nil || plain["test/loss"] != augmented["test/loss"] {
		t.Errorf("a test has the loss %v with augmentation, %v without, %v", augmented, plain, err)
	}
}
