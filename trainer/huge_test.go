package trainer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// lastRate returns a callback that records the newest learning rate.
func lastRate(rate *float64) trainer.Option {
	return trainer.WithCallbacks(trainer.Callback{Name: "rate", FitEnd: func(e *trainer.Event) error {
		*rate = e.Metrics["train/learning_rate"]
		return nil
	}})
}

// TestHugeLimits: a limit so large that it means none doesn't overflow the length of the training.
func TestHugeLimits(t *testing.T) {
	for i, c := range []trainer.Config{
		{MaxEpochs: math.MaxInt, MaxSteps: 5, Schedule: trainer.ScheduleConfig{Kind: "cosine", MinFactor: 0.5}},
		{MaxEpochs: math.MaxInt/2 + 1, MaxSteps: 5, Schedule: trainer.ScheduleConfig{Kind: "one-cycle", MinFactor: 0.5, StartFactor: 0.5}},
		{MaxEpochs: 5, AccumulateGradBatches: math.MaxInt},
		{MaxEpochs: math.MaxInt, MaxSteps: 5, AccumulateGradBatches: math.MaxInt, LimitTrainBatches: math.MaxInt, OverfitBatches: math.MaxInt},
		{MaxSteps: 5, LogEvery: math.MaxInt, ValCheckInterval: math.MaxInt, LogHistogramsEvery: math.MaxInt, MaxTime: math.MaxInt64},
		{MaxSteps: 5, EvalBatchSize: math.MaxInt, LimitValBatches: math.MaxInt, ValCheckInterval: 2},
		{MaxSteps: 5, EvalBatchSize: math.MaxInt/2 + 1, LimitValBatches: 2, ValCheckInterval: 2},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			c.BatchSize = 24
			c.Checkpoint = trainer.CheckpointConfig{Dir: t.TempDir(), Keep: math.MaxInt, EverySteps: math.MaxInt, Every: math.MaxInt64}
			var rate float64
			tr, out := newTrainer(t, c, sgdTask(0.1), lastRate(&rate))
			if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil {
				t.Fatal(err)
			}
			if tr.Step() != 5 || !(rate >= 0.05 && rate < 0.11) || strings.Contains(out.String(), " -") {
				t.Errorf("%d updates, want 5; the last rate is %g, want 0.05 to 0.1:\n%s", tr.Step(), rate, out)
			}
		})
	}
}

// TestFactorsOfHugeTrainings: at any update of a training run of any length, the factor is between
// 0 and 1.
func TestFactorsOfHugeTrainings(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	number := func() int {
		if rng.IntN(9) == 0 {
			return math.MaxInt
		}
		return int(rng.Uint64()>>1) >> rng.IntN(63)
	}
	for range 3000 {
		c := trainer.ScheduleConfig{
			Kind: []string{"constant", "step", "multistep", "cosine", "one-cycle"}[rng.IntN(5)], WarmupSteps: number(), StepSize: number() | 1,
			Milestones: []int{number()}, Gamma: rng.Float64(), MinFactor: rng.Float64(), StartFactor: rng.Float64(), PeakAt: rng.Float64(),
		}
		step, total := number(), 0
		if c.Kind == "cosine" || c.Kind == "one-cycle" || rng.IntN(2) > 0 {
			total = max(step, c.WarmupSteps) | 1
		}
		if got := c.Factor(step, total); !(got >= 0 && got <= 1) {
			t.Errorf("%+v: update %d of %d: the factor is %g", c, step, total, got)
		}
	}
}
