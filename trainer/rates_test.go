package trainer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestRateOnResume: a resumed training has the program's learning rate, and prints it if it has
// changed; a rate set by a callback stays.
func TestRateOnResume(t *testing.T) {
	const path = "/optimizers/learning_rate"
	for _, kind := range []string{"constant", "cosine"} {
		fit := func(rate float64, dir string, kill int64) (rates []float64, out string) {
			c := trainer.Config{MaxEpochs: 3, BatchSize: 12, LogEvery: 1, Schedule: trainer.ScheduleConfig{Kind: kind}, Checkpoint: trainer.CheckpointConfig{Dir: dir, EverySteps: 5}}
			note := trainer.WithCallbacks(trainer.Callback{Name: "rates", BatchEnd: func(e *trainer.Event) error {
				rates = append(rates, e.Metrics["train/learning_rate"])
				return nil
			}})
			task := trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().LearningRate(rate).Done())
			tr, text := newTrainer(t, c, task, note, killAt(kill))
			if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			if err := tr.WaitForCheckpoints(); err != nil {
				t.Fatal(err)
			}
			if tr.Store().GetVariable(path) == nil {
				t.Fatalf("no variable %s", path)
			}
			return rates, text.String()
		}
		undisturbed, _ := fit(0.01, t.TempDir(), 0)
		for _, rate := range []float64{0.01, 0.002} {
			dir := t.TempDir()
			fit(0.01, dir, 17)
			rates, out := fit(rate, dir, 0)
			want := undisturbed[len(undisturbed)-10] * rate / 0.01
			if got := rates[len(rates)-10]; got < want*0.999 || got > want*1.001 {
				t.Errorf("%s: the rate is %g, want %g", kind, got, want)
			}
			if says := strings.Contains(out, "the learning rate is 0.002"); says != (rate == 0.002) {
				t.Errorf("%s: says that the rate changed: %v\n%s", kind, says, out)
			}
		}
	}
}
