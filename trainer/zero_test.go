package trainer_test

import (
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// newBy returns a trainer whose configuration a flag, the environment or a file changes.
func newBy(t *testing.T, source string, c trainer.Config, name, value string, options ...trainer.Option) (*trainer.Trainer, error) {
	t.Helper()
	var args []string
	switch source {
	case "flag":
		args = []string{"-" + name, value}
	case "environment":
		t.Setenv("TRAINER_"+strings.ToUpper(strings.ReplaceAll(name, ".", "_")), value)
	case "file":
		file := tempFile(t, "trainer.yaml")
		section, key, nested := strings.Cut(name, ".")
		yaml := name + ": " + value
		if nested {
			yaml = section + ": {" + key + ": " + value + "}"
		}
		if err := os.WriteFile(file, []byte(yaml), 0o644); err != nil {
			t.Fatal(err)
		}
		args = []string{"-config", file}
	}
	flags := flag.NewFlagSet("notebook", flag.ContinueOnError)
	c.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	trainer.NewProcess()
	return trainer.New(world(t), c, sgdTask(0.1), append(options, trainer.WithOutput(io.Discard))...)
}

// TestZeroIsNotTheDefault: an explicit zero is refused, or taken literally, from each source; a
// missing value means the default.
func TestZeroIsNotTheDefault(t *testing.T) {
	accuracy := trainer.Config{EarlyStopping: trainer.EarlyStoppingConfig{Monitor: "val/accuracy"}}
	oneCycle := trainer.Config{Schedule: trainer.ScheduleConfig{Kind: "one-cycle"}}
	step := trainer.Config{Schedule: trainer.ScheduleConfig{Kind: "step", StepSize: 5}}
	tests := []struct {
		c       trainer.Config
		name    string
		refused string // Empty: it is taken literally.
		zero    func(trainer.Config) bool
	}{
		{trainer.Config{}, "batch_size", "batch_size: 0: it must be at least 1", func(c trainer.Config) bool { return c.BatchSize == 0 }},
		{trainer.Config{BatchSize: 12}, "batch_size", "batch_size: 0: it must be at least 1", func(c trainer.Config) bool { return c.BatchSize == 0 }},
		{trainer.Config{}, "eval_batch_size", "it must be at least 1", func(c trainer.Config) bool { return c.EvalBatchSize == 0 }},
		{trainer.Config{}, "accumulate_grad_batches", "it must be at least 1", func(c trainer.Config) bool { return c.AccumulateGradBatches == 0 }},
		{trainer.Config{}, "checkpoint.keep", "it must be at least 1", func(c trainer.Config) bool { return c.Checkpoint.Keep == 0 }},
		{trainer.Config{}, "max_epochs", "max_epochs is 0 (no limit)", func(c trainer.Config) bool { return c.MaxEpochs == 0 }},
		{trainer.Config{MaxSteps: 9}, "max_epochs", "", func(c trainer.Config) bool { return c.MaxEpochs == 0 }},
		{trainer.Config{}, "log_every", "", func(c trainer.Config) bool { return c.LogEvery == 0 }},
		{trainer.Config{EarlyStopping: trainer.EarlyStoppingConfig{Monitor: "val/loss"}}, "early_stopping.patience", "", func(c trainer.Config) bool { return c.EarlyStopping.Patience == 0 }},
		{trainer.Config{}, "check_val_every_n_epoch", "it must be at least 1", func(c trainer.Config) bool { return c.CheckValEveryNEpoch == 0 }},
		{accuracy, "early_stopping.stopping_threshold", "", func(c trainer.Config) bool { return c.EarlyStopping.StoppingThreshold != nil }},
		{step, "schedule.gamma", "schedule.gamma: 0", func(c trainer.Config) bool { return c.Schedule.Gamma == 0 }},
		{oneCycle, "schedule.peak_at", "", func(c trainer.Config) bool { return c.Schedule.PeakAt == 0 }},
		{oneCycle, "schedule.start_factor", "", func(c trainer.Config) bool { return c.Schedule.StartFactor == 0 }},
	}
	for _, test := range tests {
		for _, source := range []string{"flag", "environment", "file"} {
			t.Run(test.name+" by "+source, func(t *testing.T) {
				tr, err := newBy(t, source, test.c, test.name, "0")
				if test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
					t.Errorf("got %v, want %q", err, test.refused)
				}
				if test.refused == "" && (err != nil || !test.zero(tr.Config())) {
					t.Errorf("%v, or it is not zero", err)
				}
			})
		}
		t.Run("no "+test.name, func(t *testing.T) {
			c := test.c
			c.MaxSteps = 0
			if tr, err := newBy(t, "", c, "", ""); err != nil || test.zero(tr.Config()) {
				t.Errorf("%v, or it is zero without being given", err)
			}
		})
	}
}

// TestEmptyIsNotTheDefault is the same for strings and lists.
func TestEmptyIsNotTheDefault(t *testing.T) {
	for name, want := range map[string]string{
		"precision": `precision: "": it must be`, "strategy": `strategy: "": it must be`, "checkpoint.resume": `checkpoint.resume: "": it must be`,
		"schedule.kind": `schedule.kind: "": it must be`, "loggers": "loggers: the list is empty",
	} {
		if _, err := newBy(t, "flag", trainer.Config{}, name, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	tr, err := newBy(t, "flag", trainer.Config{}, "checkpoint.monitor", "")
	if err != nil || tr.Config().Checkpoint.Monitor != "" {
		t.Errorf("%v, or a metric is monitored", err)
	}
}

// TestZeroPatience stops at the first validation without improvement.
func TestZeroPatience(t *testing.T) {
	c := trainer.Config{MaxEpochs: 9, BatchSize: 48, EarlyStopping: trainer.EarlyStoppingConfig{Monitor: "val/loss", Mode: "max"}, Checkpoint: trainer.CheckpointConfig{Off: true}}
	tr, err := newBy(t, "flag", c, "early_stopping.patience", "0")
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil || tr.Step() != 6 {
		t.Errorf("%v: ends after step %d, want 6", err, tr.Step())
	}
}

// TestNoReports: with 0 updates between reports there is one for each epoch.
func TestNoReports(t *testing.T) {
	var reports int
	c := trainer.Config{MaxEpochs: 2, BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Off: true}}
	count := trainer.WithCallbacks(trainer.Callback{Name: "reports", EpochEnd: func(e *trainer.Event) error {
		if e.Metrics["epoch"] == float64(e.Epoch+1) {
			reports++
		}
		return nil
	}})
	tr, err := newBy(t, "flag", c, "log_every", "0", count)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil || reports != 2 {
		t.Errorf("%v: %d reports, want 2", err, reports)
	}
}
