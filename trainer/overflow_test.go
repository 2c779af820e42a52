package trainer_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/checkpoint"
	"gonbatch/logger"
	"gonbatch/models/cnn"
	"gonbatch/trainer"
)

// spikes is a dataset of numbers, of which an example's is in the list, or else 1/4.
type spikes []float32

func (s spikes) Name() string { return "spikes" }
func (s spikes) Len() int     { return len(s) }

func (s spikes) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	values := make([]float32, len(indices))
	for i, index := range indices {
		values[i] = cmp.Or(s[index], 0.25)
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(values, len(values), 1)}, nil, nil
}

// flat returns n examples, of which those at the indices have a value.
func flat(n int, value float32, at ...int) spikes {
	s := make(spikes, n)
	for _, i := range at {
		s[i] = value
	}
	return s
}

// sloped is a task whose gradient is the mean of a batch's numbers, whatever the weight is.
func sloped(o optimizer.Interface) trainer.Task {
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		w := scope.In("slope").WithInitializer(initializer.One).VariableWithShape("w", shapes.Make(x.DType(), 1, 1))
		return graph.Mul(x, w.NodeValue(x))
	}
	mean := func(_, predictions []*graph.Node) *graph.Node { return graph.ReduceAllMean(predictions[0]) }
	return trainer.Supervised(net, mean, o)
}

// slope returns the weight of sloped.
func slope(t *testing.T, tr *trainer.Trainer) float64 {
	t.Helper()
	return trainedFloats(t, tr, "/slope")[0]
}

// scaleAt is where the variables of the loss scale are.
const scaleAt = "/optimizers/loss_scale/"

// lossScale returns the loss scale of a training run, and how many updates it has skipped.
func lossScale(t *testing.T, tr *trainer.Trainer) (scale float32, skipped int32) {
	t.Helper()
	value := func(name string) *tensors.Tensor { return tr.Store().GetVariable(scaleAt + name).MustValue() }
	return tensors.ToScalar[float32](value("scale")), tensors.ToScalar[int32](value("#skipped"))
}

// state returns the weights, the optimizer's state and the averages.
func state(t *testing.T, tr *trainer.Trainer) map[string][]byte {
	t.Helper()
	all := weights(t, tr.Store())
	maps.DeleteFunc(all, func(path string, _ []byte) bool {
		return strings.HasPrefix(path, scaleAt) || path == "/global_step" || path == "/optimizers/learning_rate" || strings.HasPrefix(path, "/acc_grads/")
	})
	return all
}

// overflowCase is a training run of which one update overflows.
type overflowCase struct {
	name    string
	opt     optimizer.Interface
	config  trainer.Config
	options []trainer.Option
}

func overflowCases() []overflowCase {
	adam := func() optimizer.Interface { return optimizer.Adam().LearningRate(0.01).WeightDecay(0.1).Done() }
	momentum := trainer.SGD{LearningRate: 0.01, Momentum: 0.9, Dampening: 0.5}
	return []overflowCase{
		{name: "sgd", opt: plainSGD(0.125)},
		{name: "momentum", opt: momentum},
		{name: "adam", opt: adam()},
		{name: "averages", opt: adam(), config: trainer.Config{EMADecay: 0.9}},
		{name: "accumulation", opt: momentum, config: trainer.Config{AccumulateGradBatches: 2, EMADecay: 0.9}},
		{name: "clipping", opt: adam(), config: trainer.Config{GradientClipNorm: 0.5}},
		{name: "histograms", opt: adam(), config: trainer.Config{LogHistogramsEvery: 1}},
		{name: "changed gradients", opt: adam(), options: []trainer.Option{trainer.WithGradients(byNorm)}},
	}
}

// TestOverflow: if the gradient of one example overflows, on one rank or device, all skip the
// update. It changes nothing, the scale halves, and the training continues.
func TestOverflow(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		strategies := []string{"auto", "zero1"}
		if world(t).Devices() > 1 {
			strategies = strategies[:1]
		}
		for _, o := range overflowCases() {
			for _, strategy := range strategies {
				o.fit(t, strategy)
			}
		}
	})
}

func (o overflowCase) fit(t *testing.T, strategy string) {
	t.Helper()
	c := o.config
	c.Precision, c.Strategy, c.BatchSize, c.MaxSteps, c.MaxEpochs = "16-mixed", strategy, 6, 6, 2
	c.Shuffle, c.LogEvery, c.Loggers = new(false), 1, []string{"none"}
	c.Checkpoint.Off = true
	perUpdate := max(1, c.AccumulateGradBatches)
	const at = 3 // The update that overflows.
	spike := (at-1)*perUpdate*c.BatchSize + 1
	var before map[string][]byte
	metrics := map[string]float64{}
	look := trainer.Callback{
		Name: "look",
		BatchEnd: func(e *trainer.Event) error {
			now := state(t, e.Trainer)
			switch e.Step {
			case at:
				if before != nil { // The first batch after which the step is this one.
					compareState(t, o.name, now, before)
				}
				before = nil
			default:
				if changed := before == nil || !slices.Equal(before["/slope/w"], now["/slope/w"]); !changed && perUpdate == 1 {
					t.Errorf("%s: update %d changes nothing", o.name, e.Step)
				}
				before = now
			}
			return nil
		},
		FitEnd: func(e *trainer.Event) error { maps.Copy(metrics, e.Metrics); return nil },
	}
	tr, out := newTrainer(t, c, sloped(o.opt), append(o.options, trainer.WithCallbacks(look))...)
	if err := tr.Fit(t.Context(), flat(96, 1000, spike), nil); err != nil {
		t.Fatalf("%s, %s: %v", o.name, strategy, err)
	}
	scale, skipped := lossScale(t, tr)
	if scale != 1<<15 || skipped != 1 || tr.Step() != 6 || metrics["train/loss_scale"] != 1<<15 || metrics["train/skipped_updates"] != 1 {
		t.Errorf("%s, %s: scale %g, %d skipped, step %d, %v", o.name, strategy, scale, skipped, tr.Step(), metrics)
	}
	if strings.Contains(out.String(), "NaN") || math.IsNaN(slope(t, tr)) {
		t.Errorf("%s, %s: NaN in\n%s", o.name, strategy, out)
	}
}

// compareState checks that nothing has changed.
func compareState(t *testing.T, name string, now, before map[string][]byte) {
	t.Helper()
	if len(now) < 1 || len(now) != len(before) {
		t.Errorf("%s: %d variables, %d before", name, len(now), len(before))
	}
	for path, bits := range before {
		if !bytes.Equal(now[path], bits) {
			t.Errorf("%s: the skipped update changes %s", name, path)
		}
	}
}

// TestOverflowKeepsStatistics: batch normalization doesn't take up a batch that overflows, whether
// each rank normalizes its own part or all the whole. The ranks have the same averages afterwards.
func TestOverflowKeepsStatistics(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		for _, local := range []bool{false, true} {
			for _, perUpdate := range []int{1, 2} {
				testStatistics(t, local, perUpdate)
			}
		}
	})
}

func testStatistics(t *testing.T, local bool, perUpdate int) {
	t.Helper()
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		x = layers.Dense(scope.In("wide"), x, true, 4)
		return layers.Dense(scope.In("narrow"), cnn.BatchNorm(scope, x).Done(), true, 1)
	}
	square := func(_, predictions []*graph.Node) *graph.Node {
		return graph.ReduceAllMean(graph.Square(predictions[0]))
	}
	c := trainer.Config{
		Precision: "16-mixed", LocalBatchNorm: local, AccumulateGradBatches: perUpdate, BatchSize: 6, MaxSteps: 4, MaxEpochs: 9, Shuffle: new(false), Loggers: []string{"none"},
	}
	tr, _ := newTrainer(t, c, trainer.Supervised(net, square, plainSGD(0.01)))
	numbers := flat(60, float32(math.Inf(1)), 7, 20)
	for i := range numbers {
		if numbers[i] == 0 {
			numbers[i] = float32(i%5) - 2
		}
	}
	if err := tr.Fit(t.Context(), numbers, nil); err != nil {
		t.Fatal(err)
	}
	averages := slices.Concat(
		tensors.MustCopyFlatData[float32](tr.Store().GetVariable("/batch_normalization/mean").MustValue()),
		tensors.MustCopyFlatData[float32](tr.Store().GetVariable("/batch_normalization/variance").MustValue()))
	for _, x := range averages {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			t.Errorf("local %v, %d batches: the averages are %v", local, perUpdate, averages)
		}
	}
	if _, skipped := lossScale(t, tr); skipped != 2 {
		t.Errorf("local %v, %d batches: %d updates skipped, want 2", local, perUpdate, skipped)
	}
	all, err := world(t).AllGather([]byte(fmt.Sprint(averages)))
	if err != nil {
		t.Fatal(err)
	}
	if same := len(slices.CompactFunc(slices.Clone(all), bytes.Equal)) == 1; !same {
		t.Errorf("local %v, %d batches: the ranks have the averages %q", local, perUpdate, all)
	}
}

// TestOverflowIsLikeAbsence: a training run with a skipped update ends with the weights of one that
// never saw that batch.
func TestOverflowIsLikeAbsence(t *testing.T) {
	fit := func(steps int, at ...int) float64 {
		c := trainer.Config{Precision: "16-mixed", BatchSize: 6, MaxSteps: steps, MaxEpochs: 9, Shuffle: new(false), Loggers: []string{"none"}}
		tr, _ := newTrainer(t, c, sloped(optimizer.Adam().LearningRate(0.01).Done()))
		if err := tr.Fit(t.Context(), flat(60, 1000, at...), nil); err != nil {
			t.Fatal(err)
		}
		return slope(t, tr)
	}
	if got, want := fit(10, 20, 40), fit(8); math.Abs(got-want) > 1e-4 {
		t.Errorf("the weight is %g, without these batches %g", got, want)
	}
}

// TestLossScaleGrows after 2,000 updates without an overflow, as PyTorch's does.
func TestLossScaleGrows(t *testing.T) {
	scales := map[int64]float32{}
	look := trainer.Callback{Name: "look", BatchEnd: func(e *trainer.Event) error {
		if e.Step%1000 <= 1 || e.Step == 1999 {
			scales[e.Step], _ = lossScale(t, e.Trainer)
		}
		return nil
	}}
	c := trainer.Config{Precision: "16-mixed", BatchSize: 6, MaxSteps: 4001, MaxEpochs: 500, Shuffle: new(false), Loggers: []string{"none"}, LogEvery: 5000}
	tr, _ := newTrainer(t, c, sloped(plainSGD(1e-3)), trainer.WithCallbacks(look))
	if err := tr.Fit(t.Context(), flat(60, 0), nil); err != nil {
		t.Fatal(err)
	}
	want := map[int64]float32{1: 1 << 16, 1000: 1 << 16, 1001: 1 << 16, 1999: 1 << 16, 2000: 1 << 17, 2001: 1 << 17, 3000: 1 << 17, 3001: 1 << 17, 4000: 1 << 18, 4001: 1 << 18}
	if !maps.Equal(scales, want) {
		t.Errorf("got %v, want %v", scales, want)
	}
}

// TestLossScaleEnds: a training run whose losses are never finite again ends, with its weights.
func TestLossScaleEnds(t *testing.T) {
	c := trainer.Config{Precision: "16-mixed", BatchSize: 6, MaxEpochs: 20, Shuffle: new(false), Loggers: []string{"none"}}
	tr, _ := newTrainer(t, c, sloped(plainSGD(0.1)))
	err := tr.Fit(t.Context(), spikes(slices.Repeat([]float32{float32(math.NaN())}, 60)), nil)
	var diverged *trainer.DivergedError
	if !errors.As(err, &diverged) || !(diverged.Value < 1e-4) || !strings.Contains(err.Error(), "the loss scale") {
		t.Fatalf("got %v, want that the loss scale is too small", err)
	}
	if scale, skipped := lossScale(t, tr); slope(t, tr) != 1 || skipped != 30 || scale != float32(math.Exp2(16-30)) {
		t.Errorf("weight %g, scale %g, %d skipped", slope(t, tr), scale, skipped)
	}
}

// TestLossScaleIsState: a training run that is killed after any update resumes bit for bit, with
// its scale. The scale isn't among the weights, and another training run in the store begins its
// own.
func TestLossScaleIsState(t *testing.T) {
	fit := func(dir string, kill int64) *trainer.Trainer {
		c := trainer.Config{Precision: "16-mixed", BatchSize: 6, MaxSteps: 12, MaxEpochs: 2, AccumulateGradBatches: 2, EMADecay: 0.9, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: dir, EverySteps: 1}}
		tr, _ := newTrainer(t, c, sloped(optimizer.Adam().LearningRate(0.01).Done()), killAt(kill))
		if err := tr.Fit(t.Context(), flat(90, 1000, 7, 30, 31, 60), nil); kill < 0 && err != nil || kill > 0 && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if err := tr.WaitForCheckpoints(); err != nil {
			t.Fatal(err)
		}
		return tr
	}
	whole := t.TempDir()
	const never = -1
	want := fit(whole, never)
	if _, skipped := lossScale(t, want); skipped < 2 {
		t.Fatalf("only %d updates were skipped", skipped)
	}
	for kill := int64(2); kill < 12; kill += 3 {
		dir := t.TempDir()
		fit(dir, kill)
		compareWeights(t, weights(t, fit(dir, never).Store()), weights(t, want.Store()))
	}
	again, _ := newTrainer(t, trainer.Config{Precision: "16-mixed", BatchSize: 6, MaxSteps: 1, Loggers: []string{"none"}}, sloped(plainSGD(0.1)), trainer.WithStore(want.Store()))
	if err := again.Fit(t.Context(), flat(60, 0), nil); err != nil {
		t.Fatal(err)
	}
	if scale, skipped := lossScale(t, again); scale != 1<<16 || skipped != 0 {
		t.Errorf("another training run in the store begins with the scale %g, %d skipped", scale, skipped)
	}
	all, err := checkpoint.List(whole)
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	s, err := checkpoint.Read(all[0].Path)
	if err != nil || len(s.Weights) != 1 || !s.Weights["/slope/w"] || s.Tensors[scaleAt+"scale"] == nil {
		t.Errorf("weights %v, %v", s.Weights, err)
	}
}

// TestOverflowIsNoLoss: if the losses since the last report aren't finite, the reported one is NaN,
// and so isn't the best one, which early stopping and checkpoints look for.
func TestOverflowIsNoLoss(t *testing.T) {
	var losses []float64
	look := trainer.Callback{Name: "look", ValidationEnd: func(e *trainer.Event) error {
		losses = append(losses, e.Metrics["train/loss"])
		return nil
	}}
	c := trainer.Config{
		Precision: "16-mixed", BatchSize: 6, MaxSteps: 6, MaxEpochs: 1, Shuffle: new(false), Loggers: []string{"none"}, ValCheckInterval: 1,
		EarlyStopping: trainer.EarlyStoppingConfig{Monitor: "train/loss", Patience: 3}, Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir(), Monitor: "train/loss"},
	}
	tr, _ := newTrainer(t, c, sloped(plainSGD(0.1)), trainer.WithCallbacks(look))
	if err := tr.Fit(t.Context(), flat(36, float32(math.NaN()), 0), flat(6, 0)); err != nil {
		t.Fatal(err)
	}
	if tr.Step() != 6 || len(losses) != 6 || !math.IsNaN(losses[0]) || math.IsNaN(losses[1]) {
		t.Errorf("it ended after step %d, with the losses %v", tr.Step(), losses)
	}
}

// TestOverflowedLossesResume: if a batch has no finite loss on one rank, the others' losses count
// once in the next report, also if the training is killed and resumed before.
func TestOverflowedLossesResume(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		fit := func(dir string, kill int64) float64 {
			c := trainer.Config{Precision: "16-mixed", BatchSize: 6, MaxSteps: 5, MaxEpochs: 1, Shuffle: new(false), LogEvery: 5, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: dir, EverySteps: 1}}
			loss := math.NaN()
			look := trainer.Callback{Name: "look", FitEnd: func(e *trainer.Event) error { loss = e.Metrics["train/loss"]; return nil }}
			tr, _ := newTrainer(t, c, sloped(plainSGD(0.01)), killAt(kill), trainer.WithCallbacks(look))
			if err := tr.Fit(t.Context(), flat(36, float32(math.NaN()), 1), nil); kill < 0 && err != nil || kill > 0 && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			if err := tr.WaitForCheckpoints(); err != nil {
				t.Fatal(err)
			}
			return loss
		}
		const never = -1
		want, dir := fit(shared(t), never), shared(t)
		fit(dir, 3)
		if got := fit(dir, never); !(math.Abs(got-want) < 1e-6) {
			t.Errorf("the loss is %g, want %g", got, want)
		}
	})
}

// TestOverflowHistograms: the gradients of a skipped update, which aren't finite, aren't logged:
// loggers would report them as an error.
func TestOverflowHistograms(t *testing.T) {
	record := &ledger{logged: map[string]float64{}}
	log := logger.NewMulti(logger.MultiOptions{}, record)
	c := trainer.Config{Precision: "16-mixed", BatchSize: 6, MaxSteps: 3, MaxEpochs: 1, Shuffle: new(false), LogHistogramsEvery: 1, Checkpoint: trainer.CheckpointConfig{Off: true}}
	tr, _ := newTrainer(t, c, sloped(plainSGD(0.1)), trainer.WithLogger(log))
	if err := errors.Join(tr.Fit(t.Context(), flat(18, 1000, 7), nil), log.Close()); err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 3; step++ {
		_, gradients := record.logged[fmt.Sprintf("sum of gradients/slope/w at %d", step)]
		_, weights := record.logged[fmt.Sprintf("sum of weights/slope/w at %d", step)]
		if gradients != (step != 2) || !weights {
			t.Errorf("step %d: gradients %v, weights %v: %v", step, gradients, weights, record.logged)
		}
	}
}
