package trainer_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// averaging returns a training run with moving averages, of updates of two batches.
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
		if err := tr.Fit(t.Context(), ranktest.Blobs(48), nil); err == nil || !strings.Contains(err.Error(), "Fit") && !strings.Contains(err.Error(), "trains only once") {
			t.Errorf("%s: Fit trains on: %v", name, err)
		}
	}
	check("after Fit", tr)
	over, _ := newTrainer(t, c, task)
	mustFit(t, over)
	check("of a training run that was over", over)
	tests, _ := newTrainer(t, c, task)
	check("without Fit", tests)
}

// TestAverageResumes: a training run that is killed after any update has the same averages, bit for
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
// training run in the same store begins its own.
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

// TestAverageBegins: a training run may begin with averages when it resumes, end them, and begin
// again. They are those of the updates since they began, whatever earlier checkpoints have.
func TestAverageBegins(t *testing.T) { everywhere(t, testAverageBegins) }

func testAverageBegins(t *testing.T) {
	dir, weights, began := t.TempDir(), map[int64][]float64{}, int64(1)
	record := trainer.Callback{Name: "record", BatchEnd: func(e *trainer.Event) error {
		weights[e.Step] = trainedFloats(t, e.Trainer, "/pull")
		return nil
	}}
	end, before := 0, 0.0
	for i, decay := range []float64{0, 0.9, 0.9, 0, 0, 0.5} {
		c, task := averaging(dir)
		end += 1 + i%3
		c.MaxEpochs, c.MaxSteps, c.EMADecay = 0, end, decay
		tr, out := newTrainer(t, c, task, trainer.WithCallbacks(record))
		mustFit(t, tr)
		begins, ends := before == 0 && decay > 0, before > 0 && decay == 0
		if begins {
			began = int64(end - i%3)
		}
		for text, want := range map[string]bool{"the checkpoint has no averages of the weights": begins, "without the checkpoint's averages": ends} {
			if tr.World().IsMain() && strings.Contains(out.String(), text) != want {
				t.Errorf("start %d: it says %q: %t\n%s", i, text, !want, out)
			}
		}
		if before = decay; decay == 0 {
			continue
		}
		since := map[int64][]float64{}
		for step := began; step <= tr.Step(); step++ {
			since[step-began+1] = weights[step]
		}
		if err := tr.LoadAverage(); err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
		if d := distance(trainedFloats(t, tr, "/pull"), averageOf(since, decay)); !(d < 1e-5) {
			t.Errorf("start %d: the averages since update %d differ by %g", i, began, d)
		}
	}
}

// TestAverageOfRoundedWeights: averages are of the weights that remain after an update, which L1
// regularization rounds to zero.
func TestAverageOfRoundedWeights(t *testing.T) { everywhere(t, testAverageOfRoundedWeights) }

func testAverageOfRoundedWeights(t *testing.T) {
	store, weights := model.NewStore(), map[int64][]float64{}
	store.SetParam("/"+regularizer.ParamL1, 0.05)
	record := trainer.Callback{Name: "record", BatchEnd: func(e *trainer.Event) error {
		weights[e.Step] = trainedFloats(t, e.Trainer, "/")
		return nil
	}}
	c := trainer.Config{BatchSize: 12, MaxEpochs: 3, EMADecay: 0.9, Loggers: []string{"none"}}
	tr, _ := newTrainer(t, c, sgdTask(0.5), trainer.WithStore(store), trainer.WithCallbacks(record))
	mustFit(t, tr)
	if zeros := len(slices.DeleteFunc(slices.Clone(weights[tr.Step()]), func(w float64) bool { return w != 0 })); zeros < 10 {
		t.Fatalf("only %d weights are rounded to zero", zeros)
	}
	if err := tr.LoadAverage(); err != nil {
		t.Fatal(err)
	}
	if d := distance(trainedFloats(t, tr, "/"), averageOf(weights, 0.9)); !(d < 1e-5) {
		t.Errorf("the averages differ by %g", d)
	}
}

// TestAverageOfMixedWeights: weights in half, single and double precision, and one without
// elements, keep their types.
func TestAverageOfMixedWeights(t *testing.T) {
	types := map[string]dtypes.DType{"half": dtypes.BFloat16, "single": dtypes.Float32, "double": dtypes.Float64}
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
		sum := layers.Dense(scope.In("half"), x, true, ranktest.Classes)
		for _, name := range []string{"single", "double"} {
			sum = graph.Add(sum, graph.ConvertDType(layers.Dense(scope.In("%s", name), graph.ConvertDType(x, types[name]), true, ranktest.Classes), sum.DType()))
		}
		empty := scope.In("empty").VariableWithShape("weights", shapes.Make(dtypes.BFloat16, 0, 3)).SetTrainable(false)
		return graph.Add(sum, graph.ReduceAllSum(empty.NodeValue(x)))
	}
	c := trainer.Config{BatchSize: 12, MaxSteps: 1, Precision: "bf16-true", EMADecay: 0.9, Loggers: []string{"none"}}
	tr, _ := newTrainer(t, c, trainer.Supervised(net, loss.SparseCategoricalCrossEntropyLogits, plainSGD(0.1)))
	mustFit(t, tr)
	want := trainedFloats(t, tr, "/")
	if err := tr.LoadAverage(); err != nil {
		t.Fatal(err)
	}
	if got := trainedFloats(t, tr, "/"); !slices.Equal(got, want) {
		t.Errorf("after one update the averages are not the weights: they differ by %g", distance(got, want))
	}
	for name, dtype := range types {
		if got := tr.Store().GetVariable("/" + name + "/dense/weights").DType(); got != dtype {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if _, err := tr.Test(t.Context(), ranktest.Blobs(40)); err != nil {
		t.Error(err)
	}
}

// TestNoAverageInFloat16: a model that makes a weight in float16 can't have averages.
func TestNoAverageInFloat16(t *testing.T) {
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
		return layers.Dense(scope.In("y"), graph.ConvertDType(x, dtypes.Float16), true, ranktest.Classes)
	}
	c := trainer.Config{BatchSize: 12, MaxSteps: 1, EMADecay: 0.9, Loggers: []string{"none"}}
	tr, _ := newTrainer(t, c, trainer.Supervised(net, loss.SparseCategoricalCrossEntropyLogits, plainSGD(0.1)))
	err := tr.Fit(t.Context(), ranktest.Blobs(145), nil)
	if want := "ema_decay: the weight /y/dense/"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
