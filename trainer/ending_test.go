package trainer_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// start is one start of a training run: its configuration, and how it ends.
type start struct {
	change   func(*trainer.Config)
	options  func(cancel context.CancelFunc) []trainer.Option
	wantStep int64
	says     string
}

// onStep calls a function after the batch that ends an update.
func onStep(step int64, f func(*trainer.Event) error) trainer.Option {
	return trainer.WithCallbacks(trainer.Callback{Name: "at a step", BatchEnd: func(e *trainer.Event) error {
		if e.Step == step {
			return f(e)
		}
		return nil
	}})
}

func stopEvent(step int64) func(context.CancelFunc) []trainer.Option {
	return func(context.CancelFunc) []trainer.Option {
		return []trainer.Option{onStep(step, func(e *trainer.Event) error { e.Stop("enough"); return nil })}
	}
}

// cancelAt simulates a person who presses Ctrl-C after an update.
func cancelAt(step int64) func(context.CancelFunc) []trainer.Option {
	return func(cancel context.CancelFunc) []trainer.Option {
		return []trainer.Option{stopAt(step, cancel)}
	}
}

// TestEnding: a training run that has ended stays ended when it is started again, until the cause
// of its end is changed; after each start the newest checkpoint has all weights.
func TestEnding(t *testing.T) {
	steps := func(n int) func(*trainer.Config) { return func(c *trainer.Config) { c.MaxEpochs, c.MaxSteps = 0, n } }
	epochs := func(n int) func(*trainer.Config) { return func(c *trainer.Config) { c.MaxEpochs = n } }
	patience := func(n int) func(*trainer.Config) {
		return func(c *trainer.Config) {
			c.MaxEpochs, c.EarlyStopping = 9, trainer.EarlyStoppingConfig{Monitor: "val/loss", Mode: "max", Patience: n}
		}
	}
	least := func(epochs, steps int) func(*trainer.Config) {
		return func(c *trainer.Config) { patience(1)(c); c.MinEpochs, c.MinSteps = epochs, steps }
	}
	threshold := func(value float64) func(*trainer.Config) {
		return func(c *trainer.Config) {
			c.MaxEpochs, c.EarlyStopping = 3, trainer.EarlyStoppingConfig{Monitor: "val/accuracy", Patience: 9, StoppingThreshold: &value}
		}
	}
	tests := map[string][]start{
		"max_epochs is raised":        {{epochs(1), nil, 12, ""}, {epochs(1), nil, 12, "was finished after step 12, 1 epoch (max_epochs of 1 is reached)"}, {epochs(2), nil, 24, "resumes after step 12, epoch 2"}},
		"max_epochs is lowered":       {{epochs(3), cancelAt(30), 30, ""}, {epochs(2), nil, 30, "resumes after step 30"}, {epochs(3), nil, 36, "resumes after step 30, epoch 3"}},
		"max_steps is raised":         {{steps(20), nil, 20, ""}, {steps(20), nil, 20, "max_steps of 20 is reached"}, {steps(40), nil, 40, "resumes after step 20, epoch 2"}},
		"max_steps is lowered":        {{steps(40), cancelAt(30), 30, ""}, {steps(20), nil, 30, "resumes after step 30"}, {steps(40), nil, 40, "resumes after step 30"}},
		"stopped at the last update":  {{epochs(2), cancelAt(24), 24, ""}, {epochs(2), nil, 24, "resumes after step 24"}, {epochs(2), nil, 24, "was finished after step 24, 2 epochs"}},
		"stopped by a callback":       {{epochs(3), stopEvent(15), 15, "training ended after step 15: enough"}, {epochs(3), nil, 15, "was finished after step 15"}, {epochs(4), nil, 15, "(enough)"}},
		"stopped early":               {{patience(2), nil, 36, "has not been better"}, {patience(2), nil, 36, "was finished after step 36"}, {patience(3), nil, 48, "resumes after step 36, epoch 4"}},
		"min_epochs is raised":        {{least(2, 0), nil, 24, "has not been better"}, {least(2, 0), nil, 24, "was finished after step 24"}, {least(4, 0), nil, 48, "resumes after step 24"}},
		"min_steps is raised":         {{least(0, 24), nil, 24, ""}, {least(0, 25), nil, 36, "resumes after step 24, epoch 3"}, {least(0, 30), nil, 36, "was finished after step 36"}},
		"a minimum and other limits":  {{least(9, 99), stopEvent(15), 15, "training ended after step 15: enough"}},
		"a threshold is raised":       {{threshold(0), nil, 12, "it has reached the threshold of 0"}, {threshold(0), nil, 12, "was finished after step 12"}, {threshold(1.5), nil, 36, "resumes after step 12"}},
		"early stopping is taken out": {{patience(2), nil, 36, ""}, {epochs(4), nil, 48, "resumes after step 36"}},
	}
	for name, starts := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, s := range starts {
				tr, out := fitOnce(t, dir, s)
				if tr.Step() != s.wantStep || !strings.Contains(out.String(), s.says) {
					t.Errorf("%d updates, want %d, and %q in\n%s", tr.Step(), s.wantStep, s.says, out)
				}
				newest(t, dir, s.wantStep)
			}
		})
	}
}

// fitOnce starts a training run in a folder, once.
func fitOnce(t *testing.T, dir string, s start) (*trainer.Trainer, *bytes.Buffer) {
	t.Helper()
	c := trainer.Config{BatchSize: 12, Seed: 1, Checkpoint: trainer.CheckpointConfig{Dir: dir}}
	s.change(&c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var options []trainer.Option
	if s.options != nil {
		options = s.options(cancel)
	}
	tr, out := newTrainer(t, c, blobTask(plainNet), options...)
	var stopped *trainer.StoppedError
	if err := tr.Fit(ctx, ranktest.Blobs(145), ranktest.Blobs(40)); err != nil && !errors.As(err, &stopped) {
		t.Fatal(err)
	}
	return tr, out
}

// newest checks that the newest checkpoint is of a step, and has all weights.
func newest(t *testing.T, dir string, step int64) {
	t.Helper()
	all, err := checkpoint.List(dir)
	if err != nil || len(all) == 0 || all[0].Step != step {
		t.Fatalf("checkpoints %v, %v: want the newest of step %d", all, err, step)
	}
	s, err := checkpoint.Read(all[0].Path)
	if err != nil || len(s.Weights) != 4 {
		t.Errorf("%s has %d weights, want 4: %v", all[0].Path, len(s.Weights), err)
	}
}

// TestMaxTimeIsRaised: a training run that ended by the clock continues if it gets more time.
func TestMaxTimeIsRaised(t *testing.T) {
	dir := t.TempDir()
	clock := func(d time.Duration) start { return start{change: func(c *trainer.Config) { c.MaxTime = d }} }
	first, _ := fitOnce(t, dir, clock(20*time.Millisecond))
	again, out := fitOnce(t, dir, clock(20*time.Millisecond))
	if again.Step() != first.Step() || !strings.Contains(out.String(), "max_time of 20ms is over") {
		t.Errorf("%d updates, then %d, want none more:\n%s", first.Step(), again.Step(), out)
	}
	longer := clock(time.Hour)
	longer.options = func(context.CancelFunc) []trainer.Option {
		return []trainer.Option{onStep(first.Step()+5, func(e *trainer.Event) error { e.Stop("enough"); return nil })}
	}
	if more, out := fitOnce(t, dir, longer); more.Step() != first.Step()+5 {
		t.Errorf("%d updates, want 5 more than %d:\n%s", more.Step(), first.Step(), out)
	}
}

// TestStopInAnAccumulation: the training ends after the update that the batch belongs to.
func TestStopInAnAccumulation(t *testing.T) {
	batches := 0
	stop := trainer.WithCallbacks(trainer.Callback{Name: "stop", BatchEnd: func(e *trainer.Event) error {
		if batches++; batches == 5 {
			e.Stop("enough")
		}
		return nil
	}})
	tr, _ := newTrainer(t, trainer.Config{MaxEpochs: 2, BatchSize: 12, AccumulateGradBatches: 3}, blobTask(plainNet), stop)
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil || tr.Step() != 2 || batches != 6 {
		t.Errorf("%d updates, %d batches, want 2 and 6: %v", tr.Step(), batches, err)
	}
}

// TestKilledBetweenTwoSaves: the last epoch's checkpoint exists, but not the one that records the
// end of the training.
func TestKilledBetweenTwoSaves(t *testing.T) {
	dir := t.TempDir()
	c := trainer.Config{MaxEpochs: 3, BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Dir: dir}}
	kill := trainer.WithCallbacks(trainer.Callback{Name: "killer", CheckpointSaved: func(e *trainer.Event) error {
		if e.Step == 36 {
			return errKilled
		}
		return nil
	}})
	tr, _ := newTrainer(t, c, blobTask(plainNet), kill)
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	if err := tr.WaitForCheckpoints(); err != nil {
		t.Fatal(err)
	}
	newest(t, dir, 36)
	before := metricsOf(t, dir)
	tr, _ = newTrainer(t, c, blobTask(plainNet))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil {
		t.Fatal(err)
	}
	newest(t, dir, 36)
	if after := metricsOf(t, dir); after == 0 || after != before {
		t.Errorf("the checkpoint's val/loss is %g, it was %g", after, before)
	}
}

func metricsOf(t *testing.T, dir string) float64 {
	t.Helper()
	all, err := checkpoint.List(dir)
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	return all[0].Metrics["val/loss"]
}

func TestFitTwice(t *testing.T) {
	tr, _ := newTrainer(t, trainer.Config{BatchSize: 12}, blobTask(plainNet))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err == nil || !strings.Contains(err.Error(), "a trainer trains only once") {
		t.Errorf("got %v, want that it has ended", err)
	}
}

// TestFitAfterAStop: a training run that was only stopped resumes with the same trainer.
func TestFitAfterAStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tr, _ := newTrainer(t, trainer.Config{MaxEpochs: 2, BatchSize: 12, Seed: 1}, blobTask(plainNet), stopAt(15, cancel))
	var stopped *trainer.StoppedError
	if err := tr.Fit(ctx, ranktest.Blobs(145), nil); !errors.As(err, &stopped) || tr.Step() != 15 {
		t.Fatal(err, tr.Step())
	}
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil || tr.Step() != 24 {
		t.Fatal(err, tr.Step())
	}
	want, _ := newTrainer(t, trainer.Config{MaxEpochs: 2, BatchSize: 12, Seed: 1}, blobTask(plainNet))
	if err := want.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	compareWeights(t, weights(t, tr.Store()), weights(t, want.Store()))
}
