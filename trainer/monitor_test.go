package trainer_test

import (
	"errors"
	"strings"
	"testing"

	"gonbatch/checkpoint"
	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestMonitorsAreChecked: Fit refuses a monitor that none of its validations would compute.
func TestMonitorsAreChecked(t *testing.T) {
	const missing, unknown = "Fit has no validation set to compute it", "there is no such metric: use one of "
	both := unknown + "val/accuracy, val/loss, train/loss"
	tests := []struct {
		name, stop, best string
		validation       data.Dataset
		want             string
	}{
		{"stop without a validation", "val/loss", "", nil, `early_stopping.monitor: "val/loss": ` + missing},
		{"best without a validation", "", "val/loss", nil, `checkpoint.monitor: "val/loss": ` + missing},
		{"stop by a typo without a validation", "val/los_loss", "", nil, `early_stopping.monitor: "val/los_loss": ` + unknown + "train/loss"},
		{"stop by a typo", "val/acc", "", ranktest.Blobs(40), `early_stopping.monitor: "val/acc": ` + both},
		{"best by a typo", "", "val/acc", ranktest.Blobs(40), `checkpoint.monitor: "val/acc": ` + both},
		{"best of a test", "", "test/loss", ranktest.Blobs(40), `checkpoint.monitor: "test/loss": ` + both},
		{"the defaults", "", "", nil, ""},
		{"the training's loss", "train/loss", "train/loss", nil, ""},
		{"the training's loss and a validation", "train/loss", "val/accuracy", ranktest.Blobs(40), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := trainer.Config{
				BatchSize: 48, EarlyStopping: trainer.EarlyStoppingConfig{Monitor: test.stop},
				Checkpoint: trainer.CheckpointConfig{Monitor: test.best, Dir: t.TempDir()},
			}
			tr, _ := newTrainer(t, c, blobTask(plainNet))
			err := tr.Fit(t.Context(), ranktest.Blobs(145), test.validation)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || tr.Step() > 0) {
				t.Errorf("got %v after %d updates, want %q before the first", err, tr.Step(), test.want)
			}
		})
	}
}

// TestMonitorTheTraining: the training's own loss can end a training run without a validation set,
// and select its best checkpoint, at the end of epochs and between reports.
func TestMonitorTheTraining(t *testing.T) {
	for name, interval := range map[string]int{"at the end of an epoch": 0, "every 2 updates": 2} {
		t.Run(name, func(t *testing.T) {
			c := trainer.Config{
				MaxEpochs: 9, BatchSize: 48, ValCheckInterval: interval,
				EarlyStopping: trainer.EarlyStoppingConfig{Monitor: "train/loss", Mode: "max", Patience: 2},
				Checkpoint:    trainer.CheckpointConfig{Monitor: "train/loss", Mode: "max", Dir: t.TempDir(), EverySteps: 1, Keep: 1},
			}
			tr, out := newTrainer(t, c, sgdTask(0.1))
			if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
				t.Fatal(err)
			}
			first := int64(3)
			if interval > 0 {
				first = 2
			}
			if tr.Step() != 3*first || !strings.Contains(out.String(), "train/loss has not been better than") {
				t.Errorf("ends after step %d, want %d:\n%s", tr.Step(), 3*first, out)
			}
			all, err := checkpoint.List(c.Checkpoint.Dir)
			if err != nil || len(all) != 2 || all[1].Step != first {
				t.Errorf("%v, %v, want the last and the best, of step %d", all, err, first)
			}
		})
	}
}

// TestMonitorChanges: the best value of one metric is not compared with another metric.
func TestMonitorChanges(t *testing.T) {
	c := trainer.Config{
		MaxEpochs: 9, BatchSize: 48,
		EarlyStopping: trainer.EarlyStoppingConfig{Monitor: "val/loss", Mode: "max", Patience: 2},
		Checkpoint:    trainer.CheckpointConfig{Dir: t.TempDir(), Monitor: "val/loss", Mode: "max", EverySteps: 4, Keep: 1},
	}
	fit := func(kill int64) int64 {
		tr, _ := newTrainer(t, c, sgdTask(0.1), killAt(kill))
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if err := tr.WaitForCheckpoints(); err != nil {
			t.Fatal(err)
		}
		return tr.Step()
	}
	if got := fit(0); got != 9 {
		t.Errorf("ends after step %d, want 9: two validations without improvement", got)
	}
	c.EarlyStopping.Mode, c.Checkpoint.Mode = "min", "min"
	if got := fit(0); got != 27 {
		t.Errorf("ends after step %d, want 27: with another goal it has always improved", got)
	}
	all, err := checkpoint.List(c.Checkpoint.Dir)
	if err != nil || len(all) != 1 || all[0].Step != 27 {
		t.Errorf("%v, %v: want only the last one, which is the best", all, err)
	}
}
