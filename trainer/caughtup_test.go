package trainer_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// stopBeforeValidation trains until a validation is due, which it doesn't begin.
func stopBeforeValidation(t *testing.T, c trainer.Config, task trainer.Task, at int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tr, _ := newTrainer(t, c, task, stopAt(at, cancel))
	var stopped *trainer.StoppedError
	if err := tr.Fit(ctx, ranktest.Blobs(145), ranktest.Blobs(40)); !errors.As(err, &stopped) || stopped.Step != at {
		t.Fatalf("got %v, want a stop at %d", err, at)
	}
}

// TestValidationCaughtUp: a training that first makes up for a validation has the weights of one
// that was never stopped, whatever the schedule of the learning rate.
func TestValidationCaughtUp(t *testing.T) {
	for name, schedule := range map[string]trainer.ScheduleConfig{"constant": {}, "one-cycle": {Kind: "one-cycle"}, "cosine": {Kind: "cosine"}, "warm-up": {WarmupSteps: 30}} {
		t.Run(name, func(t *testing.T) {
			c := trainer.Config{MaxEpochs: 4, BatchSize: 12, Seed: 1, ValCheckInterval: 20, Loggers: []string{"none"}, Schedule: schedule, Checkpoint: trainer.CheckpointConfig{Off: true}}
			undisturbed, _ := newTrainer(t, c, blobTask(smallNet))
			if err := undisturbed.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil {
				t.Fatal(err)
			}
			c.Checkpoint = trainer.CheckpointConfig{Dir: t.TempDir()}
			stopBeforeValidation(t, c, blobTask(smallNet), 20)
			again, _ := newTrainer(t, c, blobTask(smallNet))
			if err := again.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil {
				t.Fatal(err)
			}
			compareWeights(t, weights(t, again.Store()), weights(t, undisturbed.Store()))
		})
	}
}

// TestOtherOptimizerAfterStop: another optimizer is refused, wherever the training was stopped.
func TestOtherOptimizerAfterStop(t *testing.T) {
	for _, at := range []int64{20, 21} { // At 20, a validation is due.
		c := trainer.Config{MaxEpochs: 4, BatchSize: 12, Seed: 1, ValCheckInterval: 20, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir()}}
		stopBeforeValidation(t, c, blobTask(plainNet), at)
		again, _ := newTrainer(t, c, sgdTask(0.1))
		if err := again.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err == nil {
			t.Errorf("after a stop at %d, SGD continues what Adam has begun", at)
		}
	}
}

// TestLockedThread: a caller that is locked to its thread can predict with several workers.
func TestLockedThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := trainer.Config{BatchSize: 12, EvalBatchSize: 1, Loader: trainer.LoaderConfig{Workers: 2}, Checkpoint: trainer.CheckpointConfig{Off: true}}
	tr, _ := newTrainer(t, c, blobTask(plainNet))
	if err := tr.Predict(t.Context(), ranktest.Blobs(40), func([]int, []*tensors.Tensor) error { return nil }); err != nil {
		t.Error(err)
	}
}
