package trainer_test

import (
	"fmt"
	"strings"
	"testing"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestDiverges: a loss that grows but remains finite is said, once.
func TestDiverges(t *testing.T) {
	for rate, want := range map[float64]int{1e9: 1, 0.1: 0} {
		tr, out := newTrainer(t, trainer.Config{MaxEpochs: 4, BatchSize: 20, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}, sgdTask(rate))
		if err := tr.Fit(t.Context(), ranktest.Blobs(120), nil); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "now: the training diverges, perhaps because the learning rate is too high"); got != want {
			t.Errorf("rate %g: said %d times, want %d:\n%s", rate, got, want, out)
		}
	}
}

// TestZeroSchedule: a schedule under which nothing is trained is said.
func TestZeroSchedule(t *testing.T) {
	for want, factor := range map[bool]trainer.ScheduleFunc{
		true:  func(step, total int) float64 { return float64(step / total) },
		false: func(step, _ int) float64 { return []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6}[step] },
	} {
		tr, out := newTrainer(t, trainer.Config{MaxEpochs: 1, BatchSize: 20, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}, sgdTask(0.1), trainer.WithSchedule(factor))
		mustFit(t, tr)
		if got := strings.Contains(out.String(), "warning: the schedule's factor is 0 for all 7 updates: the weights stay as they are"); got != want {
			t.Errorf("%v, want %v:\n%s", got, want, out)
		}
	}
}

// TestSameSets: a validation on the training set is said.
func TestSameSets(t *testing.T) {
	for n, want := range map[int]bool{40: true, 60: false, 41: false} {
		set := func(n int) data.Dataset { return named{ranktest.Blobs(n)} }
		if n == 41 { // Files of the same names and sizes.
			set = func(n int) data.Dataset { return named{data.Range(ranktest.Blobs(41), n-40, n)} }
		}
		tr, out := newTrainer(t, trainer.Config{MaxEpochs: 1, BatchSize: 20, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}, sgdTask(0.1))
		if err := tr.Fit(t.Context(), set(40), set(n)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "is the training set: its metrics don't show"); got != want {
			t.Errorf("%d examples: %v\n%s", n, got, out)
		}
	}
}

// named is a set with a fingerprint.
type named struct{ data.Dataset }

func (n named) Fingerprint() string { return fmt.Sprint("blobs of ", n.Len()) }

// TestIdleOfPhases: a phase doesn't say that what the phase before used has no effect.
func TestIdleOfPhases(t *testing.T) {
	c := trainer.Config{MaxEpochs: 2, MinEpochs: 1, BatchSize: 20, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}
	c.EarlyStopping, c.Schedule = trainer.EarlyStoppingConfig{Monitor: "val/loss", Patience: 1}, trainer.ScheduleConfig{Kind: "step", StepSize: 1, Gamma: 0.5}
	tr, out := newTrainer(t, c, sgdTask(0.1))
	if err := tr.Fit(t.Context(), ranktest.Blobs(40), ranktest.Blobs(60)); err != nil {
		t.Fatal(err)
	}
	next, err := tr.NextPhase(sgdTask(0.1), func(c *trainer.Config) {
		c.EarlyStopping.Monitor, c.Schedule.Kind, c.Schedule.PeakAt = "", "cosine", 0.5
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Fit(t.Context(), ranktest.Blobs(40), nil); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "has no effect"); n != 1 || !strings.Contains(out.String(), "schedule.peak_at has no effect: schedule.kind is cosine") {
		t.Errorf("%s", out)
	}
}

// TestNestedFit: a callback that calls Fit would never end.
func TestNestedFit(t *testing.T) {
	nested := trainer.Callback{EpochEnd: func(e *trainer.Event) error { return e.Trainer.Fit(t.Context(), ranktest.Blobs(40), nil) }}
	tr, _ := newTrainer(t, trainer.Config{MaxEpochs: 2, BatchSize: 20, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}, sgdTask(0.1), trainer.WithCallbacks(nested))
	if err := tr.Fit(t.Context(), ranktest.Blobs(40), nil); err == nil || !strings.Contains(err.Error(), "Fit is running already") {
		t.Error(err)
	}
}

// TestNever: what a training is too short for is said, and only that.
func TestNever(t *testing.T) {
	stopping := trainer.EarlyStoppingConfig{Monitor: "val/loss", Patience: 2}
	const epoch = 6 // Updates.
	for name, test := range map[string]struct {
		config  trainer.Config
		options []trainer.Option
		said    []string // Parts of its warnings, in order.
	}{
		"nothing":                  {config: trainer.Config{MaxEpochs: 3, ValCheckInterval: 18, Checkpoint: trainer.CheckpointConfig{EverySteps: 17}}},
		"epochs":                   {config: trainer.Config{MaxEpochs: 3, EarlyStopping: stopping, Schedule: trainer.ScheduleConfig{Kind: "plateau", Patience: 1}}},
		"val_check_interval":       {config: trainer.Config{MaxEpochs: 3, ValCheckInterval: 1000, EarlyStopping: stopping}, said: []string{"val_check_interval: 1000, but the training has only 18 updates: there is no validation, and nothing reaches early stopping"}},
		"without monitors":         {config: trainer.Config{MaxEpochs: 3, ValCheckInterval: 19}, said: []string{"19, but the training has only 18 updates: there is no validation\n"}},
		"check_val_every_n_epoch":  {config: trainer.Config{MaxEpochs: 3, CheckValEveryNEpoch: 5, Schedule: trainer.ScheduleConfig{Kind: "plateau"}}, said: []string{`check_val_every_n_epoch: 5, but the training has only 3 epochs: there is no validation, and nothing reaches the schedule "plateau"`}},
		"max_steps":                {config: trainer.Config{MaxSteps: 5, Checkpoint: trainer.CheckpointConfig{Monitor: "val/loss"}}, said: []string{"the training has only 5 updates, and an epoch 6: there is no validation, and nothing reaches the best checkpoint"}},
		"patience":                 {config: trainer.Config{MaxEpochs: 2, EarlyStopping: stopping}, said: []string{"early_stopping.patience: 2, but the training has only 2 validations: it can't stop early"}},
		"min_steps":                {config: trainer.Config{MaxEpochs: 3, MinSteps: 18, EarlyStopping: stopping}, said: []string{"min_steps: 18, but the training has only 18 updates"}},
		"patience of plateau":      {config: trainer.Config{MaxEpochs: 3, Schedule: trainer.ScheduleConfig{Kind: "plateau", Patience: 2}}, said: []string{"schedule.patience: 2, but the training has only 3 validations: the rate can't fall"}},
		"steps":                    {config: trainer.Config{MaxEpochs: 3, Schedule: trainer.ScheduleConfig{Kind: "step", StepSize: 16, WarmupSteps: 2}}, said: []string{"schedule.step_size: 16, but the training has only 16 updates after the warm-up"}},
		"milestones":               {config: trainer.Config{MaxEpochs: 3, Schedule: trainer.ScheduleConfig{Kind: "multistep", Milestones: []int{3, 18}}}, said: []string{"schedule.milestones: 18, but"}},
		"checkpoint.every_steps":   {config: trainer.Config{MaxEpochs: 3, Checkpoint: trainer.CheckpointConfig{EverySteps: 50}}, said: []string{"checkpoint.every_steps: 50, but the training has only 18 updates: the only checkpoint is that of its end"}},
		"checkpoint.every_epochs":  {config: trainer.Config{MaxEpochs: 3, Checkpoint: trainer.CheckpointConfig{EveryEpochs: 4}}, said: []string{"checkpoint.every_epochs: 4, but the training has only 3 epochs"}},
		"histograms and gradients": {config: trainer.Config{MaxEpochs: 2, AccumulateGradBatches: 7, LogHistogramsEvery: 3}, said: []string{"accumulate_grad_batches: 7, but an epoch has only 6 batches", "log_histograms_every: 3, but the training has only 2 updates"}},
		"wrong way":                {config: trainer.Config{MaxEpochs: 4, EarlyStopping: trainer.EarlyStoppingConfig{Monitor: "val/loss", Mode: "max", Patience: 1}, Checkpoint: trainer.CheckpointConfig{Monitor: "val/loss", Mode: "max"}}, said: []string{"early_stopping.mode: max, but the best val/loss is usually the lowest", "checkpoint.mode: max, but the best val/loss is usually the lowest"}},
		"without effect":           {config: trainer.Config{MaxEpochs: 3, MinEpochs: 2, EarlyStopping: trainer.EarlyStoppingConfig{Patience: 5}, Schedule: trainer.ScheduleConfig{Milestones: []int{4}, WarmupSteps: 2}}, said: []string{"early_stopping.patience has no effect: early_stopping.monitor is not set", "min_epochs has no effect", "schedule.milestones has no effect: schedule.kind is constant"}},
		"of another schedule":      {config: trainer.Config{MaxEpochs: 3, Schedule: trainer.ScheduleConfig{Kind: "cosine", Gamma: 0.5}}, said: []string{"schedule.gamma has no effect: schedule.kind is cosine"}},
		"a trial":                  {config: trainer.Config{FastDevRun: true, ValCheckInterval: 1000, EarlyStopping: stopping}},
		"replaced schedule":        {config: trainer.Config{MaxEpochs: 3, Schedule: trainer.ScheduleConfig{Kind: "step", StepSize: 100}}, options: []trainer.Option{trainer.WithSchedule(trainer.ScheduleFunc(func(int, int) float64 { return 1 }))}},
		"no limit in updates":      {config: trainer.Config{MaxTime: 1, ValCheckInterval: 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			test.config.BatchSize, test.config.Loggers = 20, []string{"none"}
			if test.config.Checkpoint.Dir = t.TempDir(); test.config.FastDevRun {
				test.config.Checkpoint.Dir = ""
			}
			tr, out := newTrainer(t, test.config, sgdTask(0.1), test.options...)
			if err := tr.Fit(t.Context(), ranktest.Blobs(20*epoch), ranktest.Blobs(40)); err != nil {
				t.Fatal(err)
			}
			var said []string
			for line := range strings.Lines(out.String()) {
				if strings.HasPrefix(line, "warning: ") {
					said = append(said, line)
				}
			}
			for i := range max(len(said), len(test.said)) {
				if i >= len(said) || i >= len(test.said) || !strings.Contains(said[i], test.said[i]) {
					t.Fatalf("it says %q, want %q", said, test.said)
				}
			}
		})
	}
}
