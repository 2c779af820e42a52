package trainer_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// changeable is what a person may change between two starts of a training run.
type changeable struct {
	config   trainer.Config
	training data.Dataset
	opt      optimizer.Interface
}

// fit trains one layer, in the folder, until it is killed after the update kill, if that is not 0.
func (s changeable) fit(t *testing.T, folder string, kill int64) (*trainer.Trainer, string, error) {
	t.Helper()
	s.config.Checkpoint.Dir = folder
	task := trainer.Supervised(oneLayer, loss.SparseCategoricalCrossEntropyLogits, s.opt)
	tr, out := newTrainer(t, s.config, task, killAt(kill))
	err := tr.Fit(t.Context(), s.training, nil)
	return tr, out.String(), errors.Join(err, tr.WaitForCheckpoints())
}

type otherName struct{ ranktest.Blobs }

func (otherName) Name() string { return "other" }

// TestResumeWithAChange changes one thing between two starts, in the middle of an epoch and at its
// end. Changes that would alter the rest of the epoch are refused, changes that only matter from
// now on are accepted, and the training ends after the expected update.
func TestResumeWithAChange(t *testing.T) {
	plain := func() changeable {
		c := trainer.Config{MaxEpochs: 2, BatchSize: 12, Seed: 1, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{EverySteps: 5}}
		return changeable{c, ranktest.Blobs(145), plainSGD(0.1)}
	}
	middle, end := t.TempDir(), t.TempDir()
	if _, _, err := plain().fit(t, middle, 6); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	epoch := plain()
	epoch.config.MaxEpochs = 1
	if _, _, err := epoch.fit(t, end, 0); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name        string
		change      func(*changeable)
		middle, end string // The errors; empty if there is none.
		updates     int    // In the second epoch.
	}{
		{"nothing", func(*changeable) {}, "", "", 12},
		{"more examples", func(s *changeable) { s.training = ranktest.Blobs(150) }, "over 145 examples, the dataset blobs has 150 now", "", 12},
		{"fewer batches", func(s *changeable) { s.training = ranktest.Blobs(140) }, "has the dataset changed, or drop_last?", "", 11},
		{"another dataset", func(s *changeable) { s.training = otherName{145} }, `over the dataset "blobs", this training run has "other"`, "", 12},
		{"the order", func(s *changeable) { s.config.OverfitBatches = 12 }, "with shuffling on, now it is off", "", 12},
		{"no shuffling", func(s *changeable) { s.config.Shuffle = new(false) }, "with shuffling on, now it is off (shuffle, overfit_batches)", "", 12},
		{"the last examples", func(s *changeable) { s.config.DropLast = new(false) }, "12 batches in an epoch; this one has 13: has the dataset changed, or drop_last?", "", 13},
		{"accumulation", func(s *changeable) { s.config.AccumulateGradBatches = 5 }, "accumulate_grad_batches 1, this training run has 5", "", 3},
		{"fewer batches by a limit", func(s *changeable) { s.config.LimitTrainBatches = 7 }, "12 batches in an epoch; this one has 7", "", 7},
		{"batch size", func(s *changeable) { s.config.BatchSize = 24 }, "batches of 12 examples; this one has 24", "batches of 12 examples", 0},
		{"seed", func(s *changeable) { s.config.Seed = 2 }, "seed 1; this one has 2", "seed 1; this one has 2", 0},
		{"half precision", func(s *changeable) { s.config.Precision = "bf16-true" }, `precision "32-true", this training run has`, `precision "32-true", this training run has`, 0},
		{"mixed precision", func(s *changeable) { s.config.Precision = "bf16-mixed" }, "", "", 12},
		{"a loss scale", func(s *changeable) { s.config.Precision = "16-mixed" }, "", "", 12},
		{"double precision", func(s *changeable) { s.config.Precision = "64-true" }, `precision "32-true", this training run has`, `precision "32-true", this training run has`, 0},
		{"optimizer", func(s *changeable) { s.opt = optimizer.Adam().LearningRate(0.1).Done() }, "belongs to a different model", "belongs to a different model", 0},
		{"learning rate", func(s *changeable) { s.opt = plainSGD(0.2) }, "", "", 12},
		{"schedule", func(s *changeable) { s.config.Schedule.Kind = "cosine" }, "", "", 12},
		{"clipping", func(s *changeable) { s.config.GradientClipNorm = 1 }, "", "", 12},
		{"reports", func(s *changeable) { s.config.LogEvery, s.config.LogHistogramsEvery = 3, 4 }, "", "", 12},
		{"a lower limit", func(s *changeable) { s.config.MaxEpochs = 1 }, "", "", 0},
		{"a limit of steps", func(s *changeable) { s.config.MaxSteps = 17 }, "", "", 5},
	}
	for _, test := range tests {
		for folder, want := range map[string]string{middle: test.middle, end: test.end} {
			t.Run(fmt.Sprintf("%s, at the epoch's end %v", test.name, folder == end), func(t *testing.T) {
				mine := t.TempDir()
				if err := os.CopyFS(mine, os.DirFS(folder)); err != nil {
					t.Fatal(err)
				}
				s := plain()
				test.change(&s)
				tr, out, err := s.fit(t, mine, 0)
				if want != "" {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("got %v after step %d, want %q\n%s", err, tr.Step(), want, out)
					}
					return
				}
				if err != nil || tr.Step() != int64(12+test.updates) {
					t.Errorf("%v: ends after step %d, want %d", err, tr.Step(), 12+test.updates)
				}
			})
		}
	}
}

// TestEndedWithAChange: a training that has ended is not taken for one of another kind: what makes
// other weights is named, and nothing is lost. One that goes on says what has changed.
func TestEndedWithAChange(t *testing.T) {
	points := func(first float32) data.Dataset {
		x := make([]float32, 145)
		x[144] = first
		ds, err := data.Tensors("points", []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, 145, 1)}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]int32, 145), 145, 1)})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	plain := func() changeable {
		c := trainer.Config{MaxEpochs: 1, BatchSize: 12, Seed: 1, Loggers: []string{"none"}}
		return changeable{c, points(1), plainSGD(0.1)}
	}
	ended, killed := t.TempDir(), t.TempDir()
	if _, _, err := plain().fit(t, ended, 0); err != nil {
		t.Fatal(err)
	}
	half := plain()
	half.config.Checkpoint.EverySteps = 5
	if _, _, err := half.fit(t, killed, 6); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	half.training = points(2)
	if _, _, err := half.fit(t, killed, 0); err == nil || !strings.Contains(err.Error(), "in the middle of an epoch over other examples: the fingerprint of the training set is ") {
		t.Errorf("other examples in the middle of an epoch: %v", err)
	}
	for name, test := range map[string]struct {
		change func(*changeable)
		want   string // What its error, or its output if it goes on, has.
		goesOn bool
	}{
		"nothing":              {change: func(*changeable) {}},
		"reports":              {change: func(s *changeable) { s.config.LogEvery, s.config.EvalBatchSize, s.config.ValCheckInterval = 3, 4, 5 }},
		"mixed precision":      {change: func(s *changeable) { s.config.Precision = "bf16-mixed" }, want: "precision is bf16-mixed, and was 32-true"},
		"learning rate":        {change: func(s *changeable) { s.opt = plainSGD(0.2) }, want: "learning_rate is 0.2, and was 0.1"},
		"clipping":             {change: func(s *changeable) { s.config.GradientClipNorm = 1 }, want: "gradient_clip_norm is 1, and was 0"},
		"schedule":             {change: func(s *changeable) { s.config.Schedule.Kind = "cosine" }, want: "schedule.kind is cosine, and was constant"},
		"contents of the data": {change: func(s *changeable) { s.training = points(2) }, want: "the fingerprint of the training set is "},
		"length of the data":   {change: func(s *changeable) { s.training = data.First(s.training, 144) }, want: "the number of examples of the training set is 144, and was 145"},
		"another limit":        {change: func(s *changeable) { s.config.MaxEpochs = 2 }, goesOn: true},
		"limit and rate":       {change: func(s *changeable) { s.config.MaxEpochs, s.opt = 2, plainSGD(0.2) }, want: "the training continues with a change: learning_rate is 0.2, and was 0.1\n", goesOn: true},
	} {
		t.Run(name, func(t *testing.T) {
			mine := t.TempDir()
			if err := os.CopyFS(mine, os.DirFS(ended)); err != nil {
				t.Fatal(err)
			}
			s := plain()
			test.change(&s)
			tr, out, err := s.fit(t, mine, 0)
			steps := int64(12)
			if test.goesOn {
				steps = 24
			}
			switch {
			case test.want == "" || test.goesOn:
				if err != nil || tr.Step() != steps || !strings.Contains(out, test.want) || test.want == "" && strings.Contains(out, "change:") {
					t.Errorf("%v after step %d, want %d and %q:\n%s", err, tr.Step(), steps, test.want, out)
				}
			case err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "use another checkpoint.dir"):
				t.Errorf("%v, want %q:\n%s", err, test.want, out)
			}
		})
	}
}
