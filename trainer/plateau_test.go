package trainer_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/trainer"
)

// TestPlateauAgainstPyTorch compares random sequences with what ReduceLROnPlateau of PyTorch 2.15
// did, with threshold_mode="abs" and eps=0. A null is NaN.
func TestPlateauAgainstPyTorch(t *testing.T) {
	file, err := os.ReadFile("testdata/plateau.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Mode               string     `json:"mode"`
		Patience, Cooldown int        // Lower case in the file.
		MinDelta           float64    `json:"min_delta"`
		Gamma              float64    `json:"gamma"`
		MinFactor          float64    `json:"min_factor"`
		Values             []*float64 `json:"values"`
		Factors            []float64  `json:"factors"`
	}
	if err := json.Unmarshal(file, &cases); err != nil || len(cases) < 40 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for i, c := range cases {
		s := trainer.ScheduleConfig{
			Kind: "plateau", Monitor: "val/loss", Mode: c.Mode, Patience: c.Patience, Cooldown: c.Cooldown,
			MinDelta: c.MinDelta, Gamma: c.Gamma, MinFactor: c.MinFactor,
		}
		values := make([]float64, len(c.Values))
		for k, v := range c.Values {
			values[k] = math.NaN()
			if v != nil {
				values[k] = *v
			}
		}
		for k, got := range trainer.PlateauFactors(s, values) {
			if math.Abs(got-c.Factors[k]) > 1e-9 {
				t.Fatalf("case %d, %+v: after value %d of %v the factor is %g, PyTorch's is %g", i, s, k+1, values, got, c.Factors[k])
			}
		}
	}
}

// TestPlateau: the rate falls when the metric stops improving, even if the metric is the training's
// own loss, and a training run that is killed after any update has the same rates and weights.
func TestPlateau(t *testing.T) {
	for monitor, validation := range map[string]data.Dataset{"val/loss": ranktest.Blobs(40), "train/loss": nil} {
		c := trainer.Config{
			MaxEpochs: 5, BatchSize: 48, LogEvery: 1, ValCheckInterval: 2,
			Schedule:   trainer.ScheduleConfig{Kind: "plateau", Gamma: 0.5, Patience: 1, Monitor: monitor, Mode: "max"},
			Checkpoint: trainer.CheckpointConfig{EverySteps: 1},
		}
		fit := func(dir string, kill int64) (rates map[int64]float64, weights []float64) {
			rates, c.Checkpoint.Dir = map[int64]float64{}, dir
			note := trainer.WithCallbacks(trainer.Callback{Name: "rates", BatchEnd: func(e *trainer.Event) error {
				rates[e.Step] = rateOf(e.Trainer)
				return nil
			}})
			tr, _ := newTrainer(t, c, sgdTask(0.1), note, killAt(kill))
			if err := tr.Fit(t.Context(), ranktest.Blobs(145), validation); err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			if err := tr.WaitForCheckpoints(); err != nil {
				t.Fatal(err)
			}
			return rates, floats(t, tr)
		}
		want, weights := fit(t.TempDir(), 0)
		// The validation after update 2 is the best. Those after 4 and 6 are worse, and so on: the
		// rate falls after updates 6, 10 and 14.
		for step := int64(1); step <= 15; step++ {
			if expected := 0.1 * math.Pow(0.5, float64(max(0, (step-3)/4))); math.Abs(want[step]-expected) > 1e-7 {
				t.Fatalf("%s: the rate of update %d is %g, want %g", monitor, step, want[step], expected)
			}
		}
		for _, kill := range tier.Fewer([]int64{6, 9, 2, 15, 1, 3, 4, 5, 7, 8, 10, 11, 12, 13, 14}, 4) {
			dir := t.TempDir()
			fit(dir, kill)
			rates, got := fit(dir, 0)
			for step, rate := range rates {
				if rate != want[step] {
					t.Errorf("%s: killed at %d: the rate of update %d is %g, want %g", monitor, kill, step, rate, want[step])
				}
			}
			if !slices.Equal(got, weights) {
				t.Errorf("%s: killed at %d: the weights differ by %g", monitor, kill, distance(got, weights))
			}
		}
	}
}

// rateOf returns the rate that the optimizer has used.
func rateOf(tr *trainer.Trainer) float64 {
	return float64(tr.Store().GetVariable("/optimizers/learning_rate").MustValue().Value().(float32))
}

// TestPlateauIsChecked: Fit and New refuse a schedule that can't work.
func TestPlateauIsChecked(t *testing.T) {
	for want, c := range map[string]trainer.ScheduleConfig{
		"schedule.gamma: 1: the schedule \"plateau\" needs less than 1": {Gamma: 1},
		"schedule.patience: -1":                          {Patience: -1},
		"schedule.cooldown: -1":                          {Cooldown: -1},
		"schedule.min_delta: -1":                         {MinDelta: -1},
		"schedule.mode: the name \"val/x\" doesn't show": {Monitor: "val/x"},
		"schedule.mode: \"less\"":                        {Mode: "less"},
		"schedule.monitor: \"val/loss\": Fit has no validation set to compute it":            {},
		"schedule.monitor: \"val/los_loss\": there is no such metric: use one of train/loss": {Monitor: "val/los_loss"},
	} {
		c.Kind = "plateau"
		tr, err := trainer.New(world(t), trainer.Config{Schedule: c}, blobTask(plainNet))
		if err == nil {
			err = tr.Fit(t.Context(), ranktest.Blobs(145), nil)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}
