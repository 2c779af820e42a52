package trainer_test

import (
	"context"
	"errors"
	"fmt"
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
		for _, stop := range []int64{test.stop, 0} {
			fitUntil(t, c, stop, note)
		}
		all, err := checkpoint.List(c.Checkpoint.Dir)
		if err != nil {
			t.Fatal(err)
		}
		var saved []int64
		for _, info := range all {
			saved = append(saved, info.Step)
		}
		slices.Sort(saved)
		if !slices.Equal(validated, test.validated) || !slices.Equal(saved, test.checkpoints) {
			t.Errorf("%s: validated at %v, want %v; checkpoints %v, want %v", told, validated, test.validated, saved, test.checkpoints)
		}
	}
}

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
