package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// validations records the updates after which a training run validates, including after restarts.
func validations(seen *[]int64) trainer.Callback {
	return trainer.Callback{Name: "validations", ValidationEnd: func(e *trainer.Event) error { *seen = append(*seen, e.Step); return nil }}
}

// TestValidationsOfARestart: a training run that is killed after any update validates as often as
// an undisturbed one, and its patience ends at the same update.
func TestValidationsOfARestart(t *testing.T) {
	for name, interval := range map[string]int{"at the end of an epoch": 0, "every 5 updates": 5} {
		t.Run(name, func(t *testing.T) {
			fit := func(dir string, kill int64) (int64, []int64) {
				c := trainer.Config{
					MaxEpochs: 60, BatchSize: 24, Seed: 3, ValCheckInterval: interval,
					EarlyStopping: trainer.EarlyStoppingConfig{Monitor: "val/accuracy", Patience: 3},
					Checkpoint:    trainer.CheckpointConfig{Dir: dir, EverySteps: 100000, Monitor: "val/accuracy"},
				}
				var seen []int64
				tr, _ := newTrainer(t, c, blobTask(plainNet), trainer.WithCallbacks(validations(&seen)), killAt(kill))
				if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil && !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				if err := tr.WaitForCheckpoints(); err != nil {
					t.Fatal(err)
				}
				return tr.Step(), seen
			}
			end, want := fit(t.TempDir(), 0)
			for kill := int64(7); kill < end; kill += 17 {
				dir := t.TempDir()
				_, before := fit(dir, kill)
				from := int64(0)
				if saved := steps(t, dir); len(saved) > 0 {
					from = saved[0]
				}
				step, after := fit(dir, 0)
				got := append(slices.DeleteFunc(before, func(at int64) bool { return at > from }), after...)
				if step != end || !slices.Equal(got, want) {
					t.Errorf("killed after %d: ends after %d with validations after %v, want %d and %v", kill, step, got, end, want)
				}
			}
		})
	}
}

// TestEveryInShortEpochs: time-based checkpoints also work if an epoch is a single update.
func TestEveryInShortEpochs(t *testing.T) {
	dir := t.TempDir()
	c := trainer.Config{MaxEpochs: 6, BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Dir: dir, Every: time.Nanosecond, Keep: 9}}
	tr, _ := newTrainer(t, c, blobTask(plainNet))
	if err := tr.Fit(t.Context(), ranktest.Blobs(12), nil); err != nil {
		t.Fatal(err)
	}
	if got := steps(t, dir); !slices.Equal(got, []int64{6, 5, 4, 3, 2, 1}) {
		t.Errorf("checkpoints of the steps %v, want all", got)
	}
}

// stopping is a dataset during whose evaluation a person stops the training.
type stopping struct {
	ranktest.Blobs
	stop func()
	left *atomic.Int32 // Batches until then.
}

func (s stopping) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	if s.left.Add(-1) == 0 {
		s.stop()
	}
	return s.Blobs.Batch(indices)
}

// TestValidationHearsAStop: the validation stops at once, the training saves, and the validation
// runs when the training is resumed.
func TestValidationHearsAStop(t *testing.T) {
	for name, interval := range map[string]int{"at the end of an epoch": 0, "every 4 updates": 4} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := trainer.Config{MaxEpochs: 3, BatchSize: 12, EvalBatchSize: 1, Seed: 1, ValCheckInterval: interval, Loader: trainer.LoaderConfig{Workers: 2, Prefetch: 2}, Checkpoint: trainer.CheckpointConfig{Dir: dir}}
			var want, got []int64
			undisturbed := c
			undisturbed.Checkpoint = trainer.CheckpointConfig{Off: true}
			tr, _ := newTrainer(t, undisturbed, blobTask(smallNet), trainer.WithCallbacks(validations(&want)))
			if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var left atomic.Int32
			left.Store(60) // The second validation has 40 batches.
			resumed, _ := newTrainer(t, c, blobTask(smallNet), trainer.WithCallbacks(validations(&got)))
			var stopped *trainer.StoppedError
			if err := resumed.Fit(ctx, ranktest.Blobs(145), stopping{40, cancel, &left}); !errors.As(err, &stopped) || stopped.Step != want[1] {
				t.Fatalf("got %v, want to be stopped after update %d", err, want[1])
			}
			if left.Load() < -3 { // Two are loaded ahead.
				t.Errorf("%d batches were loaded after the stop", -left.Load())
			}
			resumed, _ = newTrainer(t, c, blobTask(smallNet), trainer.WithCallbacks(validations(&got)))
			if err := resumed.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("validations after %v, want %v", got, want)
			}
			compareWeights(t, weights(t, resumed.Store()), weights(t, tr.Store()))
		})
	}
}

// TestBeforeFit: methods called before Fit use the weights of the checkpoint, and print that; or
// print that there is none.
func TestBeforeFit(t *testing.T) {
	dir := t.TempDir()
	c := trainer.Config{MaxEpochs: 4, BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Dir: dir}}
	trained, _ := newTrainer(t, c, blobTask(plainNet))
	if err := trained.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	want, err := trained.Test(t.Context(), ranktest.Blobs(103))
	if err != nil {
		t.Fatal(err)
	}
	tr, out := newTrainer(t, c, blobTask(plainNet))
	got, err := tr.Test(t.Context(), ranktest.Blobs(103))
	if err != nil || got["test/loss"] != want["test/loss"] || !strings.Contains(out.String(), "the weights are those after step 48, from "+dir) {
		t.Errorf("%v, %v, want %v, and to know whose they are:\n%s", got, err, want, out)
	}
	c.MaxEpochs = 5
	tr, _ = newTrainer(t, c, blobTask(plainNet))
	if _, err := tr.Test(t.Context(), ranktest.Blobs(103)); err != nil {
		t.Fatal(err)
	}
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil || tr.Step() != 60 {
		t.Errorf("step %d, want 60: Fit resumes after a Test: %v", tr.Step(), err)
	}
	tr, _ = newTrainer(t, c, blobTask(smallNet))
	if _, err := tr.Test(t.Context(), ranktest.Blobs(103)); err == nil || !strings.Contains(err.Error(), "belongs to a different model") {
		t.Errorf("got %v, want that the checkpoint belongs to a different model", err)
	}
	tr, _ = newTrainer(t, c, blobTask(plainNet))
	err = tr.Predict(t.Context(), ranktest.Blobs(3), func([]int, []*tensors.Tensor) error { return nil })
	if err != nil {
		t.Error(err)
	}
	tr, out = newTrainer(t, trainer.Config{BatchSize: 12}, blobTask(plainNet))
	if _, err := tr.Test(t.Context(), ranktest.Blobs(103)); err != nil || !strings.Contains(out.String(), "the weights are the initial ones") {
		t.Errorf("%v, want to be told that nothing was trained:\n%s", err, out)
	}
}

// TestUnevenValidation: ranks whose parts have different sizes, or none, build different programs,
// and still agree.
func TestUnevenValidation(t *testing.T) {
	if ranktest.InRank() {
		for _, examples := range []int{40, 41, 1, 2, 60, 61} {
			c := trainer.Config{MaxEpochs: 2, BatchSize: 12, EvalBatchSize: 20, Seed: 2, Checkpoint: trainer.CheckpointConfig{Off: true}, Loggers: []string{"none"}}
			tr, _ := newTrainer(t, c, blobTask(plainNet))
			before, err := tr.Test(t.Context(), ranktest.Blobs(examples))
			if err != nil {
				t.Fatal(err)
			}
			if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(examples)); err != nil {
				t.Fatal(err)
			}
			after, err := tr.Test(t.Context(), ranktest.Blobs(examples))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Printf("%d examples: %.5f %.5f %.5f %.5f\n", examples, before["test/loss"], before["test/accuracy"], after["test/loss"], after["test/accuracy"])
		}
		return
	}
	want := resultLines(t, 1)
	for _, ranks := range []int{2, 3} {
		got := resultLines(t, ranks)
		for _, line := range want {
			if n := count(got, line); n != ranks {
				t.Errorf("%d of %d ranks have %q in\n%s", n, ranks, line, strings.Join(got, "\n"))
			}
		}
	}
}

// resultLines returns the lines about examples that the ranks of this test print.
func resultLines(t *testing.T, ranks int) (lines []string) {
	t.Helper()
	out, err := ranktest.Start(t, ranktest.Torchrun, ranks, []string{"GONBATCH_DEVICES=1"})
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, " examples: ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func count(all []string, line string) (n int) {
	for _, other := range all {
		if other == line {
			n++
		}
	}
	return n
}

// TestLowerLimitOnRanks: ranks that have nothing left to train save and end together.
func TestLowerLimitOnRanks(t *testing.T) {
	dir := os.Getenv("CHECKPOINTS")
	if ranktest.InRank() {
		fit := func(steps int, kill int64) error {
			c := trainer.Config{MaxSteps: steps, BatchSize: 12, Seed: 3, Checkpoint: trainer.CheckpointConfig{EverySteps: 7, Dir: dir}}
			tr, _ := newTrainer(t, c, blobTask(plainNet), killAt(kill))
			return errors.Join(tr.Fit(t.Context(), ranktest.Blobs(145), nil), tr.WaitForCheckpoints())
		}
		if err := fit(60, 40); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		for _, steps := range []int{20, 20, 41} {
			if err := fit(steps, 0); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	dir = t.TempDir()
	if out, err := ranktest.Start(t, ranktest.Torchrun, 2, []string{"CHECKPOINTS=" + dir}); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	newest(t, dir, 41)
	if all, err := checkpoint.List(dir); err != nil || all[0].WorldSize != 2 {
		t.Errorf("%v, %v, want 2 ranks", all, err)
	}
}
