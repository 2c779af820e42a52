package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// inFolder returns the configuration of a training run of one epoch with a folder of checkpoints.
func inFolder(dir string) trainer.Config {
	return trainer.Config{BatchSize: 12, Seed: 1, MaxEpochs: 1, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: dir}}
}

func mustFit(t *testing.T, tr *trainer.Trainer) {
	t.Helper()
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
}

// TestRefusedTwice: a refused Fit is refused again, and trains nothing into the folder of another
// training.
func TestRefusedTwice(t *testing.T) {
	c := inFolder(t.TempDir())
	tr, _ := newTrainer(t, c, blobTask(plainNet))
	mustFit(t, tr)
	c.MaxEpochs, c.Seed = 2, 2
	tr, _ = newTrainer(t, c, blobTask(plainNet))
	for range 2 {
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err == nil || !strings.Contains(err.Error(), "seed 1; this one has 2") {
			t.Errorf("got %v, want to be refused", err)
		}
	}
}

// TestReservedScopes: a model with weights where GoMLX keeps variables of its own is refused: they
// would not be in the checkpoints.
func TestReservedScopes(t *testing.T) {
	for scope, refused := range map[string]bool{
		"metrics": true, "optimizers": true, "AdamOptimizer": true, "trainer": true, "acc_grads": true, "body/optimizers": true,
		"Metrics": false, "body/metrics": false, "optimizer": false,
	} {
		net := func(s *model.Scope, x *graph.Node) *graph.Node {
			for name := range strings.SplitSeq(scope, "/") {
				s = s.In("%s", name)
			}
			return layers.Dense(s, graph.Reshape(x, x.Shape().Dimensions[0], -1), true, ranktest.Classes)
		}
		for _, precision := range []string{"32-true", "bf16-mixed"} {
			c := inFolder(t.TempDir())
			c.Precision = precision
			tr, _ := newTrainer(t, c, blobTask(net))
			err := tr.Fit(t.Context(), ranktest.Blobs(24), nil)
			if (err != nil) != refused || refused && !strings.Contains(err.Error(), "the model has the weight /"+scope+"/") {
				t.Errorf("%s, %s: got %v", scope, precision, err)
			}
		}
	}
}

// TestDamagedForAll: if Test could not load a checkpoint, Fit does not train over it.
func TestDamagedForAll(t *testing.T) {
	c := inFolder(t.TempDir())
	tr, _ := newTrainer(t, c, blobTask(plainNet))
	mustFit(t, tr)
	all, err := checkpoint.List(c.Checkpoint.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range all {
		path := filepath.Join(info.Path, checkpoint.WeightsFile)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)-1] ^= 1
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tr, _ = newTrainer(t, c, blobTask(plainNet))
	_, testErr := tr.Test(t.Context(), ranktest.Blobs(40))
	fitErr := tr.Fit(t.Context(), ranktest.Blobs(145), nil)
	for _, err := range []error{testErr, fitErr} {
		if err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("got %v, want that the checkpoint is damaged", err)
		}
	}
}

// renamedNet is plainNet with another name for its first layer.
func renamedNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = graph.Tanh(layers.Dense(scope.In("renamed"), x, true, 16))
	return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
}

// TestPredictByAnotherModel: weights that the checkpoint does not have are not made up.
func TestPredictByAnotherModel(t *testing.T) {
	c := inFolder(t.TempDir())
	tr, _ := newTrainer(t, c, blobTask(plainNet))
	mustFit(t, tr)
	tr, _ = newTrainer(t, c, blobTask(renamedNet))
	err := tr.Predict(t.Context(), ranktest.Blobs(12), func([]int, []*tensors.Tensor) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "/renamed/dense/weights") {
		t.Errorf("got %v, want the weights that are missing", err)
	}
}

// TestAccumulationChanges: it may change from one epoch to the next.
func TestAccumulationChanges(t *testing.T) {
	for _, pair := range [][2]int{{3, 1}, {1, 3}, {3, 2}} {
		c := inFolder(t.TempDir())
		c.AccumulateGradBatches = pair[0]
		tr, _ := newTrainer(t, c, blobTask(plainNet))
		mustFit(t, tr)
		before := tr.Step()
		c.MaxEpochs, c.AccumulateGradBatches = 2, pair[1]
		tr, _ = newTrainer(t, c, blobTask(plainNet))
		mustFit(t, tr)
		if want := before + int64(12/pair[1]); tr.Step() != want {
			t.Errorf("%v: %d updates, want %d", pair, tr.Step(), want)
		}
	}
}

// TestStopAtFitStart: if a callback ends a training run before there is a model, there is nothing
// to save.
func TestStopAtFitStart(t *testing.T) {
	stop := trainer.Callback{Name: "stop", FitStart: func(e *trainer.Event) error { e.Stop("no need"); return nil }}
	tr, out := newTrainer(t, inFolder(t.TempDir()), blobTask(plainNet), trainer.WithCallbacks(stop))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil || !strings.Contains(out.String(), "no need") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestMaxTimeOfTwoFits: the time of a stopped Fit counts.
func TestMaxTimeOfTwoFits(t *testing.T) {
	c := inFolder(t.TempDir())
	c.MaxEpochs, c.MaxTime = 0, time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	var stopped *trainer.StoppedError
	tr, _ := newTrainer(t, c, blobTask(plainNet), onStep(5, func(*trainer.Event) error {
		time.Sleep(50 * time.Millisecond)
		cancel()
		return nil
	}), onStep(9, func(e *trainer.Event) error { e.Stop("enough"); return nil }))
	if err := tr.Fit(ctx, ranktest.Blobs(145), nil); !errors.As(err, &stopped) {
		t.Fatal(err)
	}
	first := tr.Elapsed()
	mustFit(t, tr)
	if second := tr.Elapsed(); first < 50*time.Millisecond || second <= first {
		t.Errorf("after the first Fit %v, after the second %v", first, second)
	}
}

// afterResumeBody is a rank of TestRanksAfterResume.
func afterResumeBody(t *testing.T) {
	folder := os.Getenv("CHECKPOINTS")
	c := inFolder(filepath.Join(folder, "steps"))
	c.MaxEpochs, c.MaxSteps, c.Checkpoint.EverySteps, c.LogEvery = 0, 4000, 100000, 1000
	tr, _ := newTrainer(t, c, blobTask(plainNet))
	mustFit(t, tr)
	c.MaxSteps = 10000
	ctx, cancel := context.WithCancel(t.Context())
	slow := trainer.WithCallbacks(trainer.Callback{Name: "slow", BatchEnd: func(*trainer.Event) error { time.Sleep(50 * time.Millisecond); return nil }})
	tr, _ = newTrainer(t, c, blobTask(plainNet), slow, stopAt(4003, cancel))
	var stopped *trainer.StoppedError
	if err := tr.Fit(ctx, ranktest.Blobs(145), nil); !errors.As(err, &stopped) || stopped.Step > 4010 {
		t.Errorf("%v: want to be stopped soon after update 4003", err)
	}
	// A start with nothing to train keeps each rank's random numbers.
	fit := func(name string, steps, stop int) map[string][]byte {
		c := inFolder(filepath.Join(folder, name))
		c.MaxEpochs, c.MaxSteps = 0, steps
		ctx, cancel := context.WithCancel(t.Context())
		tr, _ := newTrainer(t, c, blobTask(smallNet), stopAt(int64(stop), cancel))
		if err := tr.Fit(ctx, ranktest.Blobs(145), nil); err != nil && !errors.As(err, &stopped) {
			t.Fatal(err)
		}
		return weights(t, tr.Store())
	}
	want := fit("undisturbed", 40, 0)
	compareWeights(t, fit("undisturbed", 40, 0), want) // It has ended, so each rank only loads it.
	fit("disturbed", 40, 10)
	fit("disturbed", 5, 0)
	compareWeights(t, fit("disturbed", 40, 0), want)
	// Only one rank receives the stop, while the model is built for a validation.
	tr, _ = newTrainer(t, inFolder(filepath.Join(folder, "validate")), blobTask(plainNet))
	ctx, cancel = context.WithCancel(t.Context())
	if tr.World().Rank() == 1 {
		cancel()
	}
	if _, err := tr.Validate(ctx, ranktest.Blobs(40)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it is cancelled on all ranks", err)
	}
	cancel()
}

// TestRanksAfterResume: ranks receive a stop soon after a resume, keep their random numbers in a
// start with nothing to train, and stop together when one of them was told to.
func TestRanksAfterResume(t *testing.T) {
	if ranktest.InRank() {
		afterResumeBody(t)
		return
	}
	if out, err := ranktest.Start(t, ranktest.Torchrun, 2, []string{"CHECKPOINTS=" + t.TempDir(), "GONBATCH_DEVICES=1"}); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestModelPanics: whatever a model panics with is an error of Fit, Test and Predict.
func TestModelPanics(t *testing.T) {
	for name, value := range map[string]any{"a text": "no such layer", "an error": errors.New("no such layer"), "a number": 7} {
		t.Run(name, func(t *testing.T) {
			net := func(*model.Scope, *graph.Node) *graph.Node { panic(value) }
			tr, _ := newTrainer(t, trainer.Config{MaxEpochs: 1, BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Off: true}}, blobTask(net))
			_, testErr := tr.Test(t.Context(), ranktest.Blobs(20))
			predictErr := tr.Predict(t.Context(), ranktest.Blobs(20), func([]int, []*tensors.Tensor) error { return nil })
			for _, err := range []error{testErr, predictErr, tr.Fit(t.Context(), ranktest.Blobs(24), nil)} {
				if err == nil || !strings.Contains(err.Error(), fmt.Sprint(value)) {
					t.Errorf("got %v, want %v", err, value)
				}
			}
		})
	}
}
