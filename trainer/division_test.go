package trainer_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/models"
	"gonbatch/trainer"
)

// on4Devices runs a test in a process with 4 devices.
func on4Devices(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	if ranktest.InRank() {
		body(t)
		return
	}
	if out, err := ranktest.Start(t, ranktest.Torchrun, 1, []string{"GONBATCH_DEVICES=4"}); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// wideNet has weights that are divided by default.
func wideNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = graph.Tanh(layers.Dense(scope.In("first"), x, true, 512))
	x = graph.Tanh(layers.Dense(scope.In("second"), x, true, 512))
	x = layers.DropoutStatic(scope.In("dropout"), x, 0.2)
	return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
}

// dividedConfig trains a few updates on devices in rows.
func dividedConfig(parallel int) trainer.Config {
	return trainer.Config{ModelParallel: parallel, MaxSteps: 4, BatchSize: 12, Seed: 3, EvalBatchSize: 7, EMADecay: 0.9, Loggers: []string{"none"}}
}

// bytesOn returns the bytes of all variables on a device.
func bytesOn(t *testing.T, store *model.Store, device int) (total int) {
	t.Helper()
	for v := range store.IterVariables() {
		if v.HasValue() {
			total += int(shards(t, v)[device].Shape().ByteSize())
		}
	}
	return total
}

// TestModelParallelMemory: each device has its part of the weights, the optimizer's state and the
// averages, and XLA updates it in place.
func TestModelParallelMemory(t *testing.T) { on4Devices(t, testModelParallelMemory) }

func testModelParallelMemory(t *testing.T) {
	all := map[int]int{}
	for _, parallel := range []int{1, 2, 4} {
		var first map[string][]*byte
		look := trainer.Callback{Name: "look", BatchEnd: func(e *trainer.Event) error {
			if e.Step == 2 {
				first = places(t, e.Trainer.Store())
			}
			return nil
		}}
		tr, _ := newTrainer(t, dividedConfig(parallel), blobTask(wideNet), trainer.WithCallbacks(look))
		mustFit(t, tr)
		all[parallel] = bytesOn(t, tr.Store(), 0)
		for device := range 4 {
			if n := bytesOn(t, tr.Store(), device); n != all[parallel] {
				t.Errorf("model_parallel %d: device %d has %d bytes, device 0 %d", parallel, device, n, all[parallel])
			}
		}
		for path, last := range places(t, tr.Store()) {
			if !slices.Equal(first[path], last) {
				t.Errorf("model_parallel %d: %s was moved", parallel, path)
			}
		}
	}
	t.Logf("bytes of variables on each device: %v", all)
	for _, parallel := range []int{2, 4} {
		if share := float64(all[parallel]) * float64(parallel) / float64(all[1]); share > 1.05 {
			t.Errorf("model_parallel %d: each device has %d of %d bytes", parallel, all[parallel], all[1])
		}
	}
}

// TestModelParallelResults: before, during and after a training run, evaluations and predictions
// are those of whole weights, for batches of any size.
func TestModelParallelResults(t *testing.T) { on4Devices(t, testModelParallelResults) }

func testModelParallelResults(t *testing.T) {
	want := resultsOf(t, 1)
	for _, parallel := range []int{2, 4} {
		got := resultsOf(t, parallel)
		if len(got) != len(want) || len(want) < 100 {
			t.Fatalf("model_parallel %d: %d numbers, want %d", parallel, len(got), len(want))
		}
		for i := range got {
			if !(math.Abs(got[i]-want[i]) <= 1e-4+1e-3*math.Abs(want[i])) {
				t.Errorf("model_parallel %d: result %d is %g, want %g", parallel, i, got[i], want[i])
			}
		}
	}
}

// resultsOf returns everything that a trainer computes.
func resultsOf(t *testing.T, parallel int) (all []float64) {
	t.Helper()
	predict := func(tr *trainer.Trainer) {
		err := tr.PredictLabeled(t.Context(), ranktest.Blobs(25), func(indices []int, predictions, labels []*tensors.Tensor) error {
			for _, x := range tensors.MustCopyFlatData[float32](predictions[0]) {
				all = append(all, float64(x))
			}
			if n := labels[0].Shape().Dimensions[0]; n != len(indices) {
				t.Errorf("%d labels for %d examples", n, len(indices))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	validate := func(tr *trainer.Trainer) {
		metrics, err := tr.Validate(t.Context(), ranktest.Blobs(31))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, metrics["val/loss"], metrics["val/accuracy"])
	}
	during := trainer.Callback{Name: "during", BatchEnd: func(e *trainer.Event) error { predict(e.Trainer); validate(e.Trainer); return nil }}
	tr, _ := newTrainer(t, dividedConfig(parallel), blobTask(wideNet), trainer.WithCallbacks(during))
	predict(tr) // It builds the model.
	tr, _ = newTrainer(t, dividedConfig(parallel), blobTask(wideNet), trainer.WithCallbacks(during))
	validate(tr)
	mustFit(t, tr)
	if err := tr.LoadAverage(); err != nil {
		t.Fatal(err)
	}
	validate(tr)
	predict(tr)
	return append(all, trainedFloats(t, tr, "/logits")...)
}

// TestModelParallelStart: the initial weights are those of one device, bit for bit, and no device
// has more than its part of them.
func TestModelParallelStart(t *testing.T) { on4Devices(t, testModelParallelStart) }

func testModelParallelStart(t *testing.T) {
	var want map[string][]byte
	for _, parallel := range []int{1, 2, 4} {
		var got map[string][]byte
		first := trainer.Callback{Name: "first", FitStart: func(e *trainer.Event) error {
			if _, err := e.Trainer.Validate(t.Context(), ranktest.Blobs(8)); err != nil {
				return err
			}
			got = weights(t, e.Trainer.Store())
			return nil
		}}
		tr, _ := newTrainer(t, dividedConfig(parallel), blobTask(wideNet), trainer.WithCallbacks(first))
		mustFit(t, tr)
		if want == nil {
			want = got
		}
		for path, value := range want {
			if !bytes.Equal(got[path], value) {
				t.Errorf("model_parallel %d: %s differs at the start", parallel, path)
			}
		}
		if len(want) < 6 {
			t.Errorf("only %d variables", len(want))
		}
	}
}

// TestModelParallelOfOneStore: trainers with other rows of devices continue with the weights of a
// store, and a program of one device uses them.
func TestModelParallelOfOneStore(t *testing.T) { on4Devices(t, testModelParallelOfOneStore) }

func testModelParallelOfOneStore(t *testing.T) {
	var want, last []float64
	for _, rows := range [][]int{{1, 1, 1, 1, 1}, {2, 4, 1, 2, 4}} {
		store := model.NewStore()
		for i, parallel := range rows {
			trainer.NewProcess()
			c := dividedConfig(parallel)
			c.MaxSteps, c.EMADecay = 2, 0
			tr, err := trainer.New(world(t), c, blobTask(wideNet), trainer.WithStore(store), trainer.WithOutput(io.Discard), trainer.Divide("/logits/dense/biases", i%2-1))
			if err != nil {
				t.Fatal(err)
			}
			mustFit(t, tr)
			last = trainedFloats(t, tr, "/")
		}
		if want == nil {
			want = last
		}
		exec := model.MustNewExec(world(t).Backend(), store, func(scope *model.Scope, g *graph.Graph) *graph.Node {
			return graph.ReduceAllSum(store.GetVariable("/second/dense/weights").NodeValue(g))
		})
		sum := exec.MustCall()[0]
		last = append(last, float64(tensors.ToScalar[float32](sum)))
	}
	if d := distance(last[:len(want)], want); !(d < 1e-3) {
		t.Errorf("the weights differ by %g", d)
	}
}

// TestModelParallelRefused: what can't be divided is refused, with the value, the place and the
// fix.
func TestModelParallelRefused(t *testing.T) { on4Devices(t, testModelParallelRefused) }

func testModelParallelRefused(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(c *trainer.Config)
		net     func(*model.Scope, *graph.Node) *graph.Node
		options []trainer.Option
		want    string
	}{
		{"devices", func(c *trainer.Config) { c.ModelParallel = 3 }, wideNet, nil,
			"model_parallel: each weight in 3 parts, but this process has 4 devices: their number must be a multiple of 3: change one of them (submit --devices, or GONBATCH_DEVICES)"},
		{"negative", func(c *trainer.Config) { c.ModelParallel = -2 }, wideNet, nil, "model_parallel: -2: it must be at least 1"},
		{"zero1", func(c *trainer.Config) { c.Strategy = "zero1" }, wideNet, nil, `model_parallel: 2 with strategy "zero1": only spmd`},
		{"single", func(c *trainer.Config) { c.Strategy = "single" }, wideNet, nil, `model_parallel: 2 with strategy "single": only spmd`},
		{"batch", func(c *trainer.Config) { c.BatchSize = 13 }, wideNet, nil, "the batch size of 13 can't be divided evenly over 2 ranks and devices: use 12 or 14; 2 of the 4 devices have parts of the same weights"},
		{"no scope", nil, wideNet, []trainer.Option{trainer.Divide("/third", 0)}, `Divide: the model has no variable "/third", and none under it`},
		{"part of a name", nil, wideNet, []trainer.Option{trainer.Divide("/firs", 0)}, `Divide: the model has no variable "/firs", and none under it`},
		{"no axis", nil, wideNet, []trainer.Option{trainer.Divide("/first", 2)}, `Divide "/first": no variable there has an axis 2`},
		{"no path", nil, wideNet, []trainer.Option{trainer.Divide("first", 0)}, `Divide: the scope "first": it must be a path`},
		{"negative axis", nil, wideNet, []trainer.Option{trainer.Divide("/first", -2)}, `Divide "/first": the axis -2: it must be at least 0, or trainer.Whole`},
		{"odd axis", nil, unevenNet, []trainer.Option{trainer.Divide("/odd", 1)},
			`divide /odd/dense/weights, (Float32)[64, 7]: trainer.Divide "/odd": axis 1 has 7 elements, which model_parallel: 2 doesn't divide: choose another axis, or trainer.Whole`},
		{"a label in the first batch", nil, fewClasses, nil, fmt.Sprintf("epoch 1, batch 1, rank 0: load example …of blobs: the label %d: the model has the classes 0 to %d", ranktest.Classes-1, ranktest.Classes-2)},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := dividedConfig(2)
			c.ValCheckInterval = 1
			if test.change != nil {
				test.change(&c)
			}
			trainer.NewProcess()
			tr, err := trainer.New(world(t), c, blobTask(test.net), append(test.options, trainer.WithOutput(io.Discard))...)
			if err == nil {
				err = tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(20))
			}
			for part := range strings.SplitSeq(test.want, "…") { // Another device may be the first to look at its labels.
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %s", err, test.want)
				}
			}
		})
	}
}

// fewClasses has one class less than the labels.
func fewClasses(scope *model.Scope, x *graph.Node) *graph.Node {
	return layers.Dense(scope.In("logits"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, ranktest.Classes-1)
}

// unevenNet has a layer that can't be divided along its last axis.
func unevenNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	return layers.Dense(scope.In("logits"), graph.Tanh(layers.Dense(scope.In("odd"), x, true, 7)), true, ranktest.Classes)
}

// TestModelParallelRanks: several ranks are refused, because a rank drives one device.
func TestModelParallelRanks(t *testing.T) {
	if !ranktest.InRank() {
		if out, err := ranktest.Start(t, ranktest.Torchrun, 2, []string{"GONBATCH_DEVICES=1"}); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	_, err := trainer.New(world(t), dividedConfig(2), blobTask(wideNet))
	want := fmt.Sprintf("model_parallel: each weight in 2 parts, but this is rank %s of 2: XLA divides weights only among the devices of one process", os.Getenv("RANK"))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestModelParallelKept: a checkpoint of divided weights has the same files and tensors as one of
// whole weights, and each resumes the other.
func TestModelParallelKept(t *testing.T) { on4Devices(t, testModelParallelKept) }

func testModelParallelKept(t *testing.T) {
	var all [][]float64
	for _, order := range [][]int{{1, 1, 1}, {2, 4, 1}, {1, 2, 4}, {4, 1, 2}} {
		folder := t.TempDir()
		var tr *trainer.Trainer
		for i, parallel := range order {
			c := dividedConfig(parallel)
			c.MaxSteps, c.Checkpoint.Dir = 3*(i+1), folder
			tr, _ = newTrainer(t, c, trainer.Supervised(plainWide, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().LearningRate(0.01).Done(), metric.NewSparseCategoricalAccuracy("Mean Accuracy", "#acc")))
			mustFit(t, tr)
			if tr.Step() != int64(c.MaxSteps) {
				t.Fatalf("%v: %d updates, want %d", order, tr.Step(), c.MaxSteps)
			}
		}
		all = append(all, trainedFloats(t, tr, "/"))
		if d := distance(all[len(all)-1], all[0]); !(d < 1e-3) {
			t.Errorf("%v: the weights differ by %g", order, d)
		}
	}
}

// plainWide is wideNet without random numbers.
func plainWide(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = graph.Tanh(layers.Dense(scope.In("first"), x, true, 512))
	return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
}

// TestModelParallelStream: the rows of devices share the lanes of a stream.
func TestModelParallelStream(t *testing.T) { on4Devices(t, testModelParallelStream) }

func testModelParallelStream(t *testing.T) {
	var want []float64
	for _, parallel := range []int{1, 2, 4} {
		ds, err := data.FromStream(blobStream{parts: []int{50, 9, 41, 8}}, data.StreamConfig{Examples: 60, Buffer: 50, Lanes: 4})
		if err != nil {
			t.Fatal(err)
		}
		tr, _ := newTrainer(t, dividedConfig(parallel), blobTask(plainWide))
		if err := tr.Fit(t.Context(), ds, nil); err != nil {
			t.Fatal(err)
		}
		got := trainedFloats(t, tr, "/")
		if want == nil {
			want = got
		}
		if d := distance(got, want); !(d < 1e-3) {
			t.Errorf("model_parallel %d: the weights differ by %g", parallel, d)
		}
	}
}

// TestModelParallelLayers: networks of all of GoMLX's layers, with every weight divided that can
// be, train as with whole weights.
func TestModelParallelLayers(t *testing.T) { on4Devices(t, testModelParallelLayers) }

func testModelParallelLayers(t *testing.T) {
	trainer.DivideSmall(t)
	nets := mixedNets()
	nets["vision transformer"] = func(scope *model.Scope, x *graph.Node) *graph.Node {
		return models.ViT(models.ViTConfig{ImageSize: 8, PatchSize: 4, Channels: 1, Classes: ranktest.Classes, Layers: 2, Width: 16, Heads: 2})(scope, x)
	}
	nets["residual"] = func(scope *model.Scope, x *graph.Node) *graph.Node {
		return models.NarrowResNet18(ranktest.Classes, 4)(scope, graph.Concatenate([]*graph.Node{x, x, x}, -1))
	}
	for _, name := range tier.Half(slices.Sorted(maps.Keys(nets))) {
		var want []float64
		for _, parallel := range tier.Fewer([]int{1, 4, 2}, 2) {
			store := model.NewStore()
			if strings.HasPrefix(name, "looks up") {
				if _, err := store.CreateVariable("/given/factor", tensors.FromScalar(float32(0.5))); err != nil {
					t.Fatal(err)
				}
				store.GetVariable("/given/factor").SetTrainable(false)
			}
			if name == "keeps a variable" {
				nets[name] = mixedNets()[name] // Of this store.
			}
			c := trainer.Config{ModelParallel: parallel, MaxSteps: 6, MaxEpochs: 9, BatchSize: 24, Seed: 5, Precision: "64-true", Loggers: []string{"none"}}
			tr, _ := newTrainer(t, c, trainer.Supervised(nets[name], loss.SparseCategoricalCrossEntropyLogits, plainSGD(0.05)), trainer.WithStore(store))
			if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
				t.Errorf("%s, model_parallel %d: %v", name, parallel, err)
				continue
			}
			got := trainedFloats(t, tr, "/")
			if want == nil {
				want = got
			}
			if d := distance(got, want) / distance(want, make([]float64, len(want))); !(d < 1e-9) {
				t.Errorf("%s, model_parallel %d: the weights differ by %g of their norm", name, parallel, d)
			}
		}
	}
}

// TestModelParallelBesideFewerDevices: a trainer trains on the devices that the batches of a later
// trainer leave, and those of a trainer with divided weights stay.
func TestModelParallelBesideFewerDevices(t *testing.T) {
	if !ranktest.InRank() {
		for _, parallel := range []int{1, 2} {
			for _, batch := range []int{6, 9} {
				env := []string{"GONBATCH_DEVICES=all", fmt.Sprint("TEST_PARALLEL=", parallel), fmt.Sprint("TEST_BATCH=", batch)}
				if out, err := ranktest.Start(t, ranktest.Torchrun, 1, env); err != nil {
					t.Errorf("model_parallel %d, then batches of %d: %v:\n%s", parallel, batch, err, out)
				}
			}
		}
		return
	}
	parallel, _ := strconv.Atoi(os.Getenv("TEST_PARALLEL"))
	batch, _ := strconv.Atoi(os.Getenv("TEST_BATCH"))
	c := dividedConfig(parallel)
	c.BatchSize, c.Name = 24, "first"
	first, _ := newTrainer(t, c, blobTask(plainWide))
	devices := world(t).Devices()
	if c.BatchSize, c.Name, c.ModelParallel = batch, "second", 1; devices == 1 {
		return // The machine has one core.
	}
	second, _ := anotherTrainer(t, c, blobTask(plainWide))
	if kept := world(t).Devices() == devices; kept != (parallel > 1 || batch%devices == 0) {
		t.Errorf("%d devices, then %d", devices, world(t).Devices())
	}
	mustFit(t, first)
	if parallel == 1 {
		mustFit(t, second)
	}
}
