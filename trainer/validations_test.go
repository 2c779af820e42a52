package trainer_test

import (
	"strings"
	"testing"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestValidationSets: each validation computes the metrics over all validation sets, and any of
// them can be monitored.
func TestValidationSets(t *testing.T) { everywhere(t, testValidationSets) }

func testValidationSets(t *testing.T) {
	day, night := data.Range(ranktest.Blobs(90), 30, 60), data.Range(ranktest.Blobs(90), 60, 85)
	c := trainer.Config{
		MaxEpochs: 3, BatchSize: 12, Seed: 1, Loggers: []string{"none"}, LimitValBatches: 1, EvalBatchSize: 7,
		Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir(), Monitor: "val_night/accuracy"}, EarlyStopping: trainer.EarlyStoppingConfig{Monitor: "val_day/loss"},
	}
	seen := 0
	var last map[string]float64
	tr, _ := newTrainer(t, c, blobTask(plainNet), trainer.WithValidation("day", day), trainer.WithValidation("night", night), trainer.WithCallbacks(trainer.Callback{ValidationEnd: func(e *trainer.Event) error {
		seen++
		last = map[string]float64{}
		for name, value := range e.Metrics {
			last[name] = value
		}
		return nil
	}}))
	if err := tr.Fit(t.Context(), ranktest.Blobs(30), ranktest.Blobs(20)); err != nil {
		t.Fatal(err)
	}
	if seen != 3 {
		t.Errorf("%d validations", seen)
	}
	for _, set := range []struct { // In the same order on all ranks.
		stage string
		data  data.Dataset
	}{{"val/", ranktest.Blobs(20)}, {"val_day/", day}, {"val_night/", night}} {
		stage := set.stage
		want, err := tr.Validate(t.Context(), set.data)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"loss", "accuracy"} {
			if last[stage+name] != want["val/"+name] || want["val/"+name] == 0 {
				t.Errorf("%s%s is %g, want %g", stage, name, last[stage+name], want["val/"+name])
			}
		}
	}
}

func TestValidationSetsRefused(t *testing.T) {
	set := ranktest.Blobs(20)
	for want, options := range map[string][]trainer.Option{
		`the validation set "a b": its name must have`: {trainer.WithValidation("a b", set)},
		`the validation set "": its name must have`:    {trainer.WithValidation("", set)},
		`two validation sets are called "a"`:           {trainer.WithValidation("a", set), trainer.WithValidation("a", set)},
		`the validation set "a" is nil`:                {trainer.WithValidation("a", nil)},
	} {
		if _, err := trainer.New(world(t), trainer.Config{}, blobTask(plainNet), options...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	tr, _ := newTrainer(t, trainer.Config{BatchSize: 12}, blobTask(plainNet), trainer.WithValidation("a", set))
	if err := tr.Fit(t.Context(), set, nil); err == nil || !strings.Contains(err.Error(), "there is no validation set, but WithValidation") {
		t.Errorf("got %v", err)
	}
	tr, _ = newTrainer(t, trainer.Config{BatchSize: 12, EarlyStopping: trainer.EarlyStoppingConfig{Monitor: "val_b/loss"}}, blobTask(plainNet), trainer.WithValidation("a", set))
	if err := tr.Fit(t.Context(), set, set); err == nil || !strings.Contains(err.Error(), `"val_b/loss": there is no such metric: use one of val/accuracy, val/loss, val_a/accuracy, val_a/loss, train/loss`) {
		t.Errorf("got %v", err)
	}
}
