package trainer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestWeightsAreTheModel: optimizer state is not in the file of the weights, wherever the
// optimizers keep it, and a training run resumes with it.
func TestWeightsAreTheModel(t *testing.T) {
	task := func() trainer.Task {
		return trainer.Adversarial(pullApart,
			trainer.Objective{Name: "first", Scope: "/a", Optimizer: optimizer.Adam().Scope("mine").LearningRate(0.1).Done()},
			trainer.Objective{Name: "second", Scope: "/b", Optimizer: trainer.SGD{LearningRate: 0.1, Momentum: 0.9, Dampening: 0.1}})
	}
	c := inFolder(t.TempDir())
	c.LogHistogramsEvery = 5 // This adds a second program with the optimizers.
	tr, _ := newTrainer(t, c, task())
	mustFit(t, tr)
	want := []string{"/a/x", "/b/x"}
	if got := namesInNewest(t, c.Checkpoint.Dir); !slices.Equal(got, want) {
		t.Errorf("%s has %q, want %q", checkpoint.WeightsFile, got, want)
	}
	c.MaxEpochs = 2
	resumed, _ := newTrainer(t, c, task())
	if _, err := resumed.Test(t.Context(), ranktest.Blobs(24)); err != nil {
		t.Error(err)
	}
	mustFit(t, resumed)
	c.Checkpoint = trainer.CheckpointConfig{Off: true}
	whole, _ := newTrainer(t, c, task())
	mustFit(t, whole)
	compareWeights(t, weights(t, resumed.Store()), weights(t, whole.Store()))
}

// TestWeightsOfResumedAtEnd: a training run that is killed after its last update, and that resumes
// only to end, leaves the weights alone in the file of the weights.
func TestWeightsOfResumedAtEnd(t *testing.T) {
	c := trainer.Config{MaxSteps: 6, BatchSize: 12, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir(), EverySteps: 6}}
	task := func() trainer.Task {
		return trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().Scope("mine").Done())
	}
	killer := trainer.Callback{Name: "killer", CheckpointSaved: func(*trainer.Event) error { return errKilled }}
	tr, _ := newTrainer(t, c, task(), trainer.WithCallbacks(killer))
	if err := errors.Join(tr.Fit(t.Context(), ranktest.Blobs(145), nil), tr.WaitForCheckpoints()); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	want := namesInNewest(t, c.Checkpoint.Dir)
	tr, _ = newTrainer(t, c, task())
	mustFit(t, tr)
	if got := namesInNewest(t, c.Checkpoint.Dir); !slices.Equal(got, want) || len(want) != 4 {
		t.Errorf("%s has %q, want %q", checkpoint.WeightsFile, got, want)
	}
}

// namesInNewest returns the names of the weights in the newest checkpoint.
func namesInNewest(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := checkpoint.List(dir)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d checkpoints, %v", len(all), err)
	}
	weights, err := os.ReadFile(filepath.Join(all[0].Path, checkpoint.WeightsFile))
	if err != nil {
		t.Fatal(err)
	}
	tensors, _, err := checkpoint.ReadTensors(bytes.NewReader(weights), int64(len(weights)))
	if err != nil {
		t.Fatal(err)
	}
	for name := range tensors {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
