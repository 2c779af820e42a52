package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestEpochIntervals: validations and checkpoints every few epochs, also after a restart in
// between.
func TestEpochIntervals(t *testing.T) {
	for _, test := range []struct {
		c           trainer.Config
		stop        int64 // The update after which the first start ends; 0 for none.
		validated   []int64
		checkpoints []int64 // Those of the starts' ends, and of the first validation, included.
	}{
		{trainer.Config{}, 0, []int64{12, 24, 36, 48, 60, 72, 84}, []int64{12, 24, 36, 48, 60, 72, 84}},
		{trainer.Config{CheckValEveryNEpoch: 3}, 0, []int64{36, 72}, []int64{12, 24, 36, 48, 60, 72, 84}},
		{trainer.Config{CheckValEveryNEpoch: 3}, 30, []int64{36, 72}, []int64{12, 24, 30, 36, 48, 60, 72, 84}},
		{trainer.Config{CheckValEveryNEpoch: 3}, 36, []int64{36, 72}, []int64{12, 24, 36, 48, 60, 72, 84}},
		{trainer.Config{CheckValEveryNEpoch: 8}, 0, nil, []int64{12, 24, 36, 48, 60, 72, 84}},
		{trainer.Config{CheckValEveryNEpoch: 2, Checkpoint: trainer.CheckpointConfig{EveryEpochs: 3}}, 50, []int64{24, 48, 72}, []int64{24, 36, 50, 72, 84}},
		{trainer.Config{ValCheckInterval: 20, Checkpoint: trainer.CheckpointConfig{EveryEpochs: 2, EverySteps: 30}}, 0, []int64{20, 40, 60, 80}, []int64{20, 24, 30, 48, 60, 72, 84}},
		{trainer.Config{Checkpoint: trainer.CheckpointConfig{EverySteps: 40}}, 0, []int64{12, 24, 36, 48, 60, 72, 84}, []int64{12, 40, 80, 84}},
	} {
		c := test.c
		c.MaxEpochs, c.BatchSize, c.Loggers = 7, 12, []string{"none"}
		c.Checkpoint.Dir, c.Checkpoint.Keep, c.Checkpoint.Mode = t.TempDir(), 99, "max" // The first validation is the best.
		told := fmt.Sprintf("check_val_every_n_epoch %d, checkpoint.every_epochs %d, stopped at %d", c.CheckValEveryNEpoch, c.Checkpoint.EveryEpochs, test.stop)
		var validated []int64
		note := trainer.Callback{Name: "note", ValidationEnd: func(e *trainer.Event) error { validated = append(validated, e.Step); return nil }}
		for _, stop := range []int64{test.stop, noStop} {
			fitUntil(t, c, stop, note)
		}
		saved := savedSteps(t, c.Checkpoint.Dir)
		if !slices.Equal(validated, test.validated) || !slices.Equal(saved, test.checkpoints) {
			t.Errorf("%s: validated at %v, want %v; checkpoints %v, want %v", told, validated, test.validated, saved, test.checkpoints)
		}
	}
}

// noStop is no update.
const noStop = -1

// fitUntil trains until a person stops it after an update.
func fitUntil(t *testing.T, c trainer.Config, stop int64, more trainer.Callback) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tr, _ := newTrainer(t, c, blobTask(plainNet), trainer.WithCallbacks(more), stopAt(stop, cancel))
	var stopped *trainer.StoppedError
	if err := tr.Fit(ctx, ranktest.Blobs(145), ranktest.Blobs(40)); err != nil && !errors.As(err, &stopped) {
		t.Fatal(err)
	}
}

// TestRandomIntervals compares the validations and checkpoints of random intervals with a simple
// model, also if the training is stopped and resumes.
func TestRandomIntervals(t *testing.T) {
	for seed := range uint64(seeds(t, 20)) {
		rng := rand.New(rand.NewPCG(seed, 5))
		pick := func(all ...int) int { return all[rng.IntN(len(all))] }
		c := trainer.Config{
			MaxEpochs: 1 + rng.IntN(5), MaxSteps: pick(0, 0, 1+rng.IntN(30)), BatchSize: 24, AccumulateGradBatches: pick(1, 2, 4), LimitTrainBatches: pick(0, 3, 5), Loggers: []string{"none"},
			Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir(), Keep: 99, Mode: "max", EverySteps: pick(0, 1+rng.IntN(9)), EveryEpochs: pick(0, 1, 2, 3)},
		}
		if rng.IntN(2) == 0 {
			c.ValCheckInterval = 1 + rng.IntN(9)
		} else {
			c.CheckValEveryNEpoch = 1 + rng.IntN(3)
		}
		stop := int64(1 + rng.IntN(25))
		var validated []int64
		note := trainer.Callback{Name: "note", ValidationEnd: func(e *trainer.Event) error { validated = append(validated, e.Step); return nil }}
		for _, stop := range []int64{stop, noStop} {
			fitUntil(t, c, stop, note)
		}
		checkBest(t, fmt.Sprintf("seed %d", seed), c, validated)
		want, saves := intervals(c, 145/24, stop)
		if saved := savedSteps(t, c.Checkpoint.Dir); !slices.Equal(validated, want) || !slices.Equal(saved, saves) {
			t.Errorf("seed %d: %+v, stopped at %d: validated at %v, want %v; checkpoints %v, want %v", seed, c, stop, validated, want, saved, saves)
		}
	}
}

// checkBest checks that the best checkpoint is that of the first validation.
func checkBest(t *testing.T, told string, c trainer.Config, validated []int64) {
	t.Helper()
	if len(validated) == 0 {
		return
	}
	dir, err := checkpoint.Open(c.Checkpoint.Dir, checkpoint.Options{Metric: "val/loss", Mode: checkpoint.Max})
	if err != nil {
		t.Fatal(err)
	}
	best, err := dir.Best(nil)
	if err != nil || best == nil || best.Step != validated[0] {
		t.Errorf("%s: %+v: the best checkpoint isn't that of step %d: %v, %v", told, c, validated[0], best, err)
	}
}

// intervals returns the updates after which a training run validates and saves.
func intervals(c trainer.Config, batches int, stop int64) (validated, saved []int64) {
	if c.LimitTrainBatches > 0 {
		batches = min(batches, c.LimitTrainBatches)
	}
	inEpoch := int64((batches-1)/c.AccumulateGradBatches + 1)
	last := int64(c.MaxEpochs) * inEpoch
	if c.MaxSteps > 0 {
		last = min(last, int64(c.MaxSteps))
	}
	every := func(interval int, n int64) bool { return interval > 0 && n%int64(interval) == 0 }
	for step := int64(1); step <= last; step++ {
		epoch, ends := step/inEpoch, step%inEpoch == 0
		validates := every(c.ValCheckInterval, step) || ends && every(c.CheckValEveryNEpoch, epoch)
		best := validates && len(validated) == 0
		epochDue := ends && (every(c.Checkpoint.EveryEpochs, epoch) || c.Checkpoint.EveryEpochs == 0 && c.Checkpoint.EverySteps == 0)
		if validates {
			validated = append(validated, step)
		}
		if best || epochDue || every(c.Checkpoint.EverySteps, step) || step == stop || step == last {
			saved = append(saved, step)
		}
	}
	return validated, saved
}

// savedSteps returns the steps of the checkpoints in a folder.
func savedSteps(t *testing.T, dir string) (steps []int64) {
	t.Helper()
	all, err := checkpoint.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range all {
		steps = append(steps, info.Step)
	}
	slices.Sort(steps)
	return steps
}
