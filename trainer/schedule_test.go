package trainer_test

import (
	"math"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

func TestSchedules(t *testing.T) {
	tests := []struct {
		name  string
		c     trainer.ScheduleConfig
		total int
		want  map[int]float64
	}{
		{"step", trainer.ScheduleConfig{Kind: "step", StepSize: 10, Gamma: 0.5}, 100, map[int]float64{0: 1, 9: 1, 10: 0.5, 25: 0.25}},
		{"multistep", trainer.ScheduleConfig{Kind: "multistep", Milestones: []int{5, 8}, Gamma: 0.1}, 100, map[int]float64{4: 1, 5: 0.1, 8: 0.01, 99: 0.01}},
		{"cosine", trainer.ScheduleConfig{Kind: "cosine"}, 100, map[int]float64{0: 1, 50: 0.5, 100: 0}},
		{"cosine with an end", trainer.ScheduleConfig{Kind: "cosine", MinFactor: 0.2}, 100, map[int]float64{0: 1, 50: 0.6, 100: 0.2, 200: 0.2}},
		{"warm-up", trainer.ScheduleConfig{Kind: "constant", WarmupSteps: 4}, 100, map[int]float64{0: 0.2, 1: 0.4, 3: 0.8, 4: 1, 99: 1}},
		{"warm-up, then cosine", trainer.ScheduleConfig{Kind: "cosine", WarmupSteps: 20}, 120, map[int]float64{20: 1, 70: 0.5, 120: 0}},
		{"one-cycle", trainer.ScheduleConfig{Kind: "one-cycle", StartFactor: 0.1, PeakAt: 0.5}, 101, map[int]float64{0: 0.1, 25: 0.55, 50: 1, 75: 0.5, 100: 0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for step, want := range test.want {
				if got := test.c.Factor(step, test.total); math.Abs(got-want) > 1e-9 {
					t.Errorf("step %d: %g, want %g", step, got, want)
				}
			}
		})
	}
}

// TestScheduleIsUsed: with a factor of 0 nothing changes, and the logged rate is the optimizer's
// own rate times the factor.
func TestScheduleIsUsed(t *testing.T) {
	var rates []float64
	record := trainer.Callback{Name: "rates", BatchEnd: func(e *trainer.Event) error {
		for v := range e.Trainer.Store().IterVariables() {
			if v.Path() == "/optimizers/learning_rate" {
				rates = append(rates, float64(v.MustValue().Value().(float32)))
			}
		}
		return nil
	}}
	half := trainer.ScheduleFunc(func(step, total int) float64 { return 1 / float64(step+1) })
	tr, _ := newTrainer(t, trainer.Config{MaxSteps: 4, BatchSize: 12}, blobTask(plainNet), trainer.WithCallbacks(record), trainer.WithSchedule(half))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	// After update i the variable still has the rate that it used: the next one is set after the
	// callbacks.
	for i, want := range []float64{0.01, 0.005, 0.01 / 3, 0.0025} {
		if len(rates) != 4 || math.Abs(rates[i]-want) > 1e-8 {
			t.Fatalf("rates %v, want 0.01 divided by 1, 2, 3, 4", rates)
		}
	}
}

// TestScheduleEdges: at every update of a short training the factor is a number between 0 and 1.
func TestScheduleEdges(t *testing.T) {
	for _, c := range []trainer.ScheduleConfig{
		{Kind: "step", StepSize: 1, Gamma: 0.1}, {Kind: "multistep", Milestones: []int{0}, Gamma: 0.1}, {Kind: "cosine"},
		{Kind: "one-cycle", StartFactor: 0.04, PeakAt: 0.3}, {Kind: "one-cycle", StartFactor: 1, PeakAt: 0.999}, {Kind: "one-cycle"},
	} {
		for total := 1; total < 6; total++ {
			for c.WarmupSteps = 0; c.WarmupSteps < total; c.WarmupSteps++ {
				for step := range total + 2 {
					if got := c.Factor(step, total); !(got >= 0 && got <= 1) {
						t.Errorf("%+v: update %d of %d: the factor is %g", c, step, total, got)
					}
				}
			}
		}
	}
}

// TestFastDevRunOfASchedule: its only update has a rate, whatever the schedule of the whole
// training.
func TestFastDevRunOfASchedule(t *testing.T) {
	c := trainer.Config{MaxEpochs: 10, BatchSize: 12, FastDevRun: true, Schedule: trainer.ScheduleConfig{Kind: "one-cycle", WarmupSteps: 50}}
	tr, _ := newTrainer(t, c, sgdTask(0.1))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil {
		t.Fatal(err)
	}
	for _, x := range floats(t, tr) {
		if math.IsNaN(x) {
			t.Fatal("a weight is NaN")
		}
	}
}

// TestScheduleWithoutANumber: the error names the schedule and the update.
func TestScheduleWithoutANumber(t *testing.T) {
	s := trainer.ScheduleFunc(func(step, total int) float64 { return 1 / float64(3-step) })
	tr, _ := newTrainer(t, trainer.Config{MaxSteps: 3, BatchSize: 12}, sgdTask(0.1), trainer.WithSchedule(s))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Errorf("%v: a factor after the last update does not matter", err)
	}
	tr, _ = newTrainer(t, trainer.Config{MaxSteps: 5, BatchSize: 12}, sgdTask(0.1), trainer.WithSchedule(s))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err == nil || !strings.Contains(err.Error(), "the schedule's factor for update 4 of 5 is +Inf") {
		t.Errorf("got %v, want the update", err)
	}
}
