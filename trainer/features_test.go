package trainer_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

func sgdTask(rate float64) trainer.Task {
	sgd := optimizer.StochasticGradientDescent().WithLearningRate(rate).WithDecay(false).Done()
	return trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, sgd)
}

// floats returns the trained weights in the order of their names.
func floats(t *testing.T, tr *trainer.Trainer) []float64 {
	t.Helper()
	byName := map[string][]float32{}
	var names []string
	for v := range tr.Store().IterVariables() {
		if v.Trainable {
			names = append(names, v.Path())
			byName[v.Path()] = tensors.MustCopyFlatData[float32](v.MustValue())
		}
	}
	slices.Sort(names)
	var all []float64
	for _, name := range names {
		for _, x := range byName[name] {
			all = append(all, float64(x))
		}
	}
	return all
}

func distance(a, b []float64) float64 {
	var sum float64
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum)
}

// TestAccumulation: the gradients of three small batches equal those of one that is three times as
// large.
func TestAccumulation(t *testing.T) {
	fit := func(c trainer.Config) []float64 {
		c.MaxSteps, c.Seed = 8, 5
		tr, _ := newTrainer(t, c, sgdTask(0.1))
		if err := tr.Fit(t.Context(), ranktest.Blobs(144), nil); err != nil {
			t.Fatal(err)
		}
		if tr.Step() != 8 {
			t.Errorf("%d updates, want 8", tr.Step())
		}
		return floats(t, tr)
	}
	large, small, none := fit(trainer.Config{BatchSize: 36}), fit(trainer.Config{BatchSize: 12, AccumulateGradBatches: 3}), fit(trainer.Config{BatchSize: 12})
	if d := distance(large, small); d > 1e-5 {
		t.Errorf("3 batches of 12 differ by %g from one of 36", d)
	}
	if d := distance(large, none); d < 1e-3 {
		t.Errorf("without accumulation it is the same: the test shows nothing")
	}
}

// TestClipping: the length of a gradient descent step is then the rate times the norm.
func TestClipping(t *testing.T) {
	weightsAfter := func(steps int) []float64 {
		tr, _ := newTrainer(t, trainer.Config{MaxSteps: steps, BatchSize: 12, Seed: 5, GradientClipNorm: 0.01}, sgdTask(0.1))
		if err := tr.Fit(t.Context(), ranktest.Blobs(144), nil); err != nil {
			t.Fatal(err)
		}
		return floats(t, tr)
	}
	if d := distance(weightsAfter(1), weightsAfter(2)); math.Abs(d-0.001) > 1e-5 {
		t.Errorf("a step of %g, want 0.001", d)
	}
}

// TestClippingByValue: no element of a gradient descent step is larger than the rate times the
// limit, and smaller ones are as without it.
func TestClippingByValue(t *testing.T) {
	const rate, limit = 0.1, 0.02
	after := func(rate, limit float64) []float64 {
		tr, _ := newTrainer(t, trainer.Config{MaxSteps: 1, BatchSize: 12, Seed: 5, GradientClipValue: limit}, sgdTask(rate))
		if err := tr.Fit(t.Context(), ranktest.Blobs(144), nil); err != nil {
			t.Fatal(err)
		}
		return floats(t, tr)
	}
	before, whole, clipped := after(1e-30, 0), after(rate, 0), after(rate, limit)
	large := 0
	for i, w := range before {
		step := w - whole[i]
		if math.Abs(step) > rate*limit {
			large++
		}
		if want := max(-rate*limit, min(rate*limit, step)); math.Abs(w-clipped[i]-want) > 1e-6 {
			t.Errorf("weight %d: a step of %g, want %g", i, w-clipped[i], want)
		}
	}
	if large == 0 || large == len(before) {
		t.Errorf("%d of %d steps are clipped", large, len(before))
	}
}

func TestLimits(t *testing.T) {
	tests := []struct {
		name  string
		c     trainer.Config
		steps int64
		says  string
	}{
		{"one epoch if nothing is said", trainer.Config{}, 12, "epoch 1/1"},
		{"steps", trainer.Config{MaxSteps: 30}, 30, "step 30/30"},
		{"epochs or steps", trainer.Config{MaxEpochs: 2, MaxSteps: 100}, 24, "step 24/24"},
		{"short epochs", trainer.Config{MaxEpochs: 3, LimitTrainBatches: 2}, 6, "step 6/6"},
		{"batches that don't divide", trainer.Config{MaxEpochs: 2, AccumulateGradBatches: 5}, 6, "step 6/6"},
		{"overfit", trainer.Config{MaxEpochs: 4, OverfitBatches: 1}, 4, "step 4/4"},
		{"does it run?", trainer.Config{MaxEpochs: 50, FastDevRun: true}, 1, "val/loss"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.c.BatchSize = 12
			tr, out := newTrainer(t, test.c, blobTask(plainNet))
			if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil {
				t.Fatal(err)
			}
			if tr.Step() != test.steps || !strings.Contains(out.String(), test.says) {
				t.Errorf("%d steps, want %d and %q:\n%s", tr.Step(), test.steps, test.says, out)
			}
		})
	}
}

func TestMaxTime(t *testing.T) {
	tr, out := newTrainer(t, trainer.Config{MaxTime: 50 * time.Millisecond, BatchSize: 12}, blobTask(plainNet))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "max_time of 50ms is over") {
		t.Errorf("it does not say why it ended:\n%s", out)
	}
}

func TestEarlyStopping(t *testing.T) {
	c := trainer.Config{MaxEpochs: 40, BatchSize: 12, EarlyStopping: trainer.EarlyStoppingConfig{Monitor: "val/accuracy"}}
	for patience, says := range map[int]string{1: "for 1 validation\n", 2: "for 2 validations\n"} {
		c.EarlyStopping.Patience = patience
		var values []float64
		record := trainer.Callback{Name: "record", ValidationEnd: func(e *trainer.Event) error {
			values = append(values, e.Metrics["val/accuracy"])
			return nil
		}}
		tr, out := newTrainer(t, c, blobTask(plainNet), trainer.WithCallbacks(record))
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil {
			t.Fatal(err)
		}
		// As in Lightning's EarlyStopping: exactly this many validations after the best one.
		best := slices.Index(values, slices.Max(values))
		if len(values) != best+1+patience || !strings.Contains(out.String(), "val/accuracy has not been better than 1 "+says) {
			t.Errorf("patience %d: validations %v:\n%s", patience, values, out)
		}
	}
	c.EarlyStopping.Monitor = "val/acc"
	tr, _ := newTrainer(t, c, blobTask(plainNet))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err == nil || !strings.Contains(err.Error(), `"val/acc": there is no such metric: use one of val/accuracy, val/loss`) {
		t.Errorf("got %v, want the metrics that there are", err)
	}
}

// TestBestIsKept: the newest two are kept, and the best one as well.
func TestBestIsKept(t *testing.T) {
	dir := t.TempDir()
	c := trainer.Config{MaxEpochs: 6, BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Dir: dir, Monitor: "val/loss", Mode: "max"}}
	tr, _ := newTrainer(t, c, blobTask(plainNet))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil {
		t.Fatal(err)
	}
	all, err := checkpoint.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var steps []int64
	for _, info := range all {
		steps = append(steps, info.Step)
	}
	if want := []int64{72, 60, 12}; !slices.Equal(steps, want) {
		t.Errorf("checkpoints of steps %v, want %v: the loss falls, so that the first is the largest", steps, want)
	}
}

func TestDiverged(t *testing.T) {
	task := trainer.Supervised(plainNet, func(labels, predictions []*graph.Node) *graph.Node {
		return graph.Log(graph.Neg(graph.ReduceAllSum(graph.Square(predictions[0]))))
	}, optimizer.Adam().Done())
	tr, _ := newTrainer(t, trainer.Config{MaxSteps: 5, BatchSize: 12}, task)
	var diverged *trainer.DivergedError
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); !errors.As(err, &diverged) || diverged.Rank != 0 || !strings.Contains(err.Error(), "the loss is NaN after step 0 on rank 0") {
		t.Errorf("got %v, want the rank and the step", err)
	}
}

func TestPredict(t *testing.T) {
	tr, _ := newTrainer(t, trainer.Config{MaxEpochs: 2, BatchSize: 12, EvalBatchSize: 30}, blobTask(plainNet))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	var seen []int
	right := 0
	err := tr.Predict(t.Context(), ranktest.Blobs(103), func(indices []int, predictions []*tensors.Tensor) error {
		if want := fmt.Sprintf("(Float32)[%d, %d]", len(indices), ranktest.Classes); predictions[0].Shape().String() != want {
			return fmt.Errorf("shape %s, want %s", predictions[0].Shape(), want)
		}
		_, labels, err := ranktest.Blobs(103).Batch(indices)
		if err != nil {
			return err
		}
		logits, want := tensors.MustCopyFlatData[float32](predictions[0]), tensors.MustCopyFlatData[int32](labels[0])
		for i := range indices {
			own := logits[i*ranktest.Classes : (i+1)*ranktest.Classes]
			if slices.Index(own, slices.Max(own)) == int(want[i]) {
				right++
			}
		}
		seen = append(seen, indices...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := tr.Test(t.Context(), ranktest.Blobs(103))
	if err != nil {
		t.Fatal(err)
	}
	if got := float64(right) / 103; len(seen) != 103 || math.Abs(got-metrics["test/accuracy"]) > 1e-6 {
		t.Errorf("%d examples, accuracy %g, want 103 and %g", len(seen), got, metrics["test/accuracy"])
	}
}

func TestPrecision(t *testing.T) {
	for name, want := range map[string]dtypes.DType{"bf16-true": dtypes.BFloat16, "64-true": dtypes.Float64} {
		tr, _ := newTrainer(t, trainer.Config{MaxEpochs: 4, BatchSize: 12, Precision: name}, blobTask(plainNet))
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
			t.Fatal(err)
		}
		for v := range tr.Store().IterVariables() {
			if v.Trainable && v.DType() != want {
				t.Errorf("%s: %s is %s", name, v.Path(), v.DType())
			}
		}
		metrics, err := tr.Test(t.Context(), ranktest.Blobs(103))
		if err != nil || metrics["test/accuracy"] < 0.8 {
			t.Errorf("%s: %v, %v", name, metrics, err)
		}
	}
}

// TestAnotherTraining: a checkpoint of another training run is refused.
func TestAnotherTraining(t *testing.T) {
	dir := t.TempDir()
	base := trainer.Config{MaxEpochs: 1, BatchSize: 12, Seed: 1, Checkpoint: trainer.CheckpointConfig{Dir: dir}}
	tr, _ := newTrainer(t, base, blobTask(plainNet))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	trained := weights(t, tr.Store())
	wide := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return plainNet(scope, graph.Concatenate([]*graph.Node{x, x}, 1))
	}
	more := base
	more.MaxEpochs = 2
	seed, batch, must := more, more, base
	seed.Seed, batch.BatchSize = 2, 24
	must.Checkpoint = trainer.CheckpointConfig{Dir: t.TempDir(), Resume: "must"}
	tests := []struct {
		name     string
		c        trainer.Config
		task     trainer.Task
		examples int
		want     string
	}{
		{"seed", seed, blobTask(plainNet), 145, "seed 1; this one has 2"},
		{"batch size", batch, blobTask(plainNet), 145, "batches of 12 examples; this one has 24"},
		{"model", more, blobTask(wide), 145, "/hidden/dense/weights"},
		{"nothing to go on from", must, blobTask(plainNet), 145, "there is no valid checkpoint"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tr, _ := newTrainer(t, test.c, test.task)
			if err := tr.Fit(t.Context(), ranktest.Blobs(test.examples), nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	t.Run("finished", func(t *testing.T) {
		tr, out := newTrainer(t, base, blobTask(plainNet))
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil || !strings.Contains(out.String(), "training was finished after step 12") {
			t.Errorf("%v:\n%s", err, out)
		}
		for name, want := range trained {
			if got := weights(t, tr.Store())[name]; !bytes.Equal(got, want) {
				t.Errorf("%s is not what it was, or not there", name)
			}
		}
		for v := range tr.Store().IterVariables() {
			if want := strings.HasPrefix(v.Path(), "/logits/") || strings.HasPrefix(v.Path(), "/hidden/"); v.Trainable != want {
				t.Errorf("%s: trainable %v, want %v", v.Path(), v.Trainable, want)
			}
		}
		if metrics, err := tr.Test(t.Context(), ranktest.Blobs(103)); err != nil || metrics["test/accuracy"] < 0.5 {
			t.Errorf("its weights are there: %v, %v", metrics, err)
		}
	})
	t.Run("more epochs", func(t *testing.T) {
		tr, out := newTrainer(t, more, blobTask(plainNet))
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil || tr.Step() != 24 {
			t.Errorf("step %d, %v:\n%s", tr.Step(), err, out)
		}
	})
}

// TestCallbackState comes back with the training.
func TestCallbackState(t *testing.T) {
	c := trainer.Config{MaxEpochs: 2, BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir(), EverySteps: 4}}
	counter := func(count *int) trainer.Option {
		return trainer.WithCallbacks(trainer.Callback{
			Name: "counter", BatchEnd: func(*trainer.Event) error { *count++; return nil },
			State:   func() ([]byte, error) { return []byte(fmt.Sprint(*count)), nil },
			Restore: func(state []byte) error { _, err := fmt.Sscan(string(state), count); return err },
		})
	}
	var first, second int
	tr, _ := newTrainer(t, c, blobTask(plainNet), counter(&first), killAt(10))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	tr, _ = newTrainer(t, c, blobTask(plainNet), counter(&second))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	if first != 10 || second != 24 {
		t.Errorf("counted %d, then %d: want 10, then 24", first, second)
	}
}
