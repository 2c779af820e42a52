package trainer_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// averaging returns a training with moving averages, of updates of two batches.
func averaging(dir string) (trainer.Config, trainer.Task) {
	c, task := swinging(dir)
	c.EMADecay, c.AccumulateGradBatches, c.MaxEpochs = 0.9, 3, 4
	c.Checkpoint.EverySteps = 1
	return c, task
}

// averageOf returns the averages of weights over updates, in double precision.
func averageOf(weights map[int64][]float64, decay float64) []float64 {
	average := slices.Clone(weights[1])
	for step := int64(2); weights[step] != nil; step++ {
		for i, w := range weights[step] {
			average[i] = decay*average[i] + (1-decay)*w
		}
	}
	return average
}

// TestAverage: LoadAverage gives the model the averages of the weights after each update, after
// Fit, in a trainer that has nothing left to train, and in one that only tests.
func TestAverage(t *testing.T) { everywhere(t, testAverage) }

func testAverage(t *testing.T) {
	c, task := averaging(t.TempDir())
	weights := map[int64][]float64{}
	record := trainer.Callback{Name: "record", BatchEnd: func(e *trainer.Event) error {
		if e.Step > 0 {
			weights[e.Step] = trainedFloats(t, e.Trainer, "/pull")
		}
		return nil
	}}
	tr, _ := newTrainer(t, c, task, trainer.WithCallbacks(record))
	mustFit(t, tr)
	want := averageOf(weights, 0.9)
	if last := trainedFloats(t, tr, "/pull"); len(weights) < 5 || distance(last, want) < 1e-3 {
		t.Fatalf("%d updates, and the average is like the weights", len(weights))
	}
	var first []float64
	check := func(name string, tr *trainer.Trainer) {
		if err := tr.LoadAverage(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := tr.Test(t.Context(), ranktest.Blobs(40)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := trainedFloats(t, tr, "/pull")
		if first == nil {
			first = got
		}
		if d := distance(got, want); !(d < 1e-5) || !slices.Equal(got, first) {
			t.Errorf("%s: the averages differ by %g", name, d)
		}
		if value := predicted(t, tr); math.Abs(value-want[0]) > 1e-5 {
			t.Errorf("%s: predicted with the weight %g, want %g", name, value, want[0])
		}
		if err := tr.Fit(t.Context(), ranktest.Blobs(48), nil); err == nil {
			t.Errorf("%s: Fit trains on", name)
		}
	}
	check("after Fit", tr)
	over, _ := newTrainer(t, c, task)
	mustFit(t, over)
	check("of a training that was over", over)
	tests, _ := newTrainer(t, c, task)
	check("without Fit", tests)
}

// TestAverageResumes: a training that is killed after any update has the same averages, bit for
// bit, in any precision.
func TestAverageResumes(t *testing.T) {
	const never = -1
	for _, precision := range []string{"32-true", "bf16-true"} {
		fit := func(dir string, kill int64) (*trainer.Trainer, []float64) {
			c, task := averaging(dir)
			c.Precision, c.EMADecay = precision, 0.999
			if precision == "bf16-true" {
				task = sgdTask(0.1)
			}
			tr, _ := newTrainer(t, c, task, killAt(kill))
			if err := tr.Fit(t.Context(), ranktest.Blobs(48), nil); err != nil {
				if !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				return tr, nil
			}
			if err := tr.LoadAverage(); err != nil {
				t.Fatal(err)
			}
			return tr, trainedFloats(t, tr, "/")
		}
		tr, want := fit(t.TempDir(), never)
		if len(want) == 0 {
			t.Fatal("no weights")
		}
		for kill := int64(1); kill < tr.Step(); kill++ {
			dir := t.TempDir()
			fit(dir, kill)
			if _, got := fit(dir, never); !slices.Equal(got, want) {
				t.Errorf("%s: killed at %d: the averages differ by %g", precision, kill, distance(got, want))
			}
		}
	}
}

// TestAverageIsState: averages are in the checkpoint, but not among the weights, and a second
// training in the same store begins its own.
func TestAverageIsState(t *testing.T) {
	c, task := averaging(t.TempDir())
	tr, _ := newTrainer(t, c, task)
	mustFit(t, tr)
	all, err := checkpoint.List(c.Checkpoint.Dir)
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	s, err := checkpoint.Read(all[0].Path)
	if err != nil || len(s.Weights) != 1 || s.Tensors["/optimizers/average/pull/weights"] == nil {
		t.Errorf("weights %v, %v", s.Weights, err)
	}
	c.Checkpoint.Dir, c.MaxSteps = "", 1
	again, _ := newTrainer(t, c, task, trainer.WithStore(tr.Store()))
	mustFit(t, again)
	want := trainedFloats(t, again, "/pull")
	if err := again.LoadAverage(); err != nil || !slices.Equal(trainedFloats(t, again, "/pull"), want) {
		t.Errorf("after one update the average is not the weights: %v", err)
	}
}

// TestAverageRefuses: the error gives the reason and the fix.
func TestAverageRefuses(t *testing.T) {
	c, task := averaging(t.TempDir())
	tr, _ := newTrainer(t, c, task)
	refuses := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refuses("there is none yet: call Fit first", tr.LoadAverage())
	early := trainer.Callback{Name: "early", EpochEnd: func(e *trainer.Event) error { return e.Trainer.LoadAverage() }}
	tr, _ = newTrainer(t, c, task, trainer.WithCallbacks(early))
	refuses("Fit is training now", tr.Fit(t.Context(), ranktest.Blobs(48), nil))
	c.EMADecay = 0
	tr, _ = newTrainer(t, c, task)
	refuses("ema_decay is not set", tr.LoadAverage())
	for _, decay := range []float64{1, -0.1, math.NaN()} {
		c.EMADecay = decay
		_, err := trainer.New(world(t), c, task)
		refuses("ema_decay: ", err)
	}
}
