package trainer_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/trainer"
)

// everywhere runs a test on one device, on several devices of one process, and on several ranks.
// With -short, half of the tests run on several devices, and the others on several ranks.
func everywhere(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	if ranktest.InRank() {
		body(t)
		return
	}
	t.Run("one device", body)
	type world struct {
		name  string
		ranks int
		env   string
	}
	others := []world{{"2 devices", 1, "GONBATCH_DEVICES=2"}, {"3 ranks", 3, "GONBATCH_DEVICES=1"}}
	if len(t.Name())%2 == 1 { // As good as by chance, but always the same.
		slices.Reverse(others)
	}
	for _, other := range tier.Fewer(others, 1) {
		t.Run(other.name, func(t *testing.T) {
			out, err := ranktest.Start(t, ranktest.Torchrun, other.ranks, []string{other.env})
			if err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

// hereAndOnTwoRanks is everywhere for tests that take longer.
func hereAndOnTwoRanks(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	body(t)
	if ranktest.InRank() {
		return
	}
	if out, err := ranktest.Start(t, ranktest.Torchrun, 2, []string{"GONBATCH_DEVICES=1"}); err != nil {
		t.Errorf("2 ranks: %v:\n%s", err, out)
	}
}

func plainSGD(rate float64) optimizer.Interface {
	return optimizer.StochasticGradientDescent().WithLearningRate(rate).WithDecay(false).Done()
}

// trainedFloats returns the trained weights under a path, in the order of their names, whatever
// their type.
func trainedFloats(t *testing.T, tr *trainer.Trainer, under string) []float64 {
	t.Helper()
	byName := map[string][]float64{}
	for v := range tr.Store().IterVariables() {
		if !v.Trainable || !strings.HasPrefix(v.Path(), under) {
			continue
		}
		err := v.MustValue().ConstFlatData(func(flat any) {
			byName[v.Path()] = wideFloats(flat)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for name := range byName {
		names = append(names, name)
	}
	slices.Sort(names)
	var all []float64
	for _, name := range names {
		all = append(all, byName[name]...)
	}
	return all
}

// wideFloats returns the elements of a tensor of floating-point numbers.
func wideFloats(flat any) (all []float64) {
	switch flat := flat.(type) {
	case []float32:
		all = numbers(flat)
	case []float64:
		all = slices.Clone(flat)
	case []bfloat16.BFloat16:
		for _, x := range flat {
			all = append(all, float64(x.Float32()))
		}
	case []float16.Float16:
		for _, x := range flat {
			all = append(all, float64(x.Float32()))
		}
	}
	return all
}

// TestAccumulationOfFew: if the last group has fewer batches, their mean is used, so two batches of
// 12 equal one of 24, even if the group size is eight.
func TestAccumulationOfFew(t *testing.T) { everywhere(t, testAccumulationOfFew) }

func testAccumulationOfFew(t *testing.T) {
	for _, precision := range []string{"32-true", "bf16-true"} {
		after := func(c trainer.Config) []float64 {
			c.Seed, c.MaxEpochs, c.Precision = 5, 3, precision
			store := model.NewStore()
			store.SetParam("/"+regularizer.ParamL1, 0.02) // It changes weights after an update, which must not happen earlier.
			tr, _ := newTrainer(t, c, sgdTask(0.5), trainer.WithStore(store))
			if err := tr.Fit(t.Context(), ranktest.Blobs(24), nil); err != nil {
				t.Fatal(err)
			}
			if tr.Step() != 3 {
				t.Errorf("%d updates, want 3", tr.Step())
			}
			return trainedFloats(t, tr, "/")
		}
		want, limit := after(trainer.Config{BatchSize: 24}), map[string]float64{"32-true": 1e-5, "bf16-true": 0.1}[precision]
		for _, group := range map[string][]int{"32-true": {2, 8}, "bf16-true": {8}}[precision] {
			if d := distance(want, after(trainer.Config{BatchSize: 12, AccumulateGradBatches: group})); !(d < limit) {
				t.Errorf("%s: 2 of %d batches of 12 end %g from one of 24", precision, group, d)
			}
		}
	}
}

// TestRegularization: what layers add to the loss counts in a step with several losses just as with
// one loss.
func TestRegularization(t *testing.T) { everywhere(t, testRegularization) }

func testRegularization(t *testing.T) {
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(scope.In("logits"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, ranktest.Classes)
	}
	supervised := func() trainer.Task {
		return trainer.Supervised(func(scope *model.Scope, x *graph.Node) *graph.Node { return net(scope.In("a"), x) }, loss.SparseCategoricalCrossEntropyLogits, plainSGD(0.01))
	}
	step := func(scope *model.Scope, inputs, labels []*graph.Node) []*graph.Node {
		one := func(name string) *graph.Node {
			return graph.ReduceAllMean(loss.SparseCategoricalCrossEntropyLogits(labels, []*graph.Node{net(scope.In("%s", name), inputs[0])}))
		}
		return []*graph.Node{one("a"), one("b")}
	}
	several := func() trainer.Task {
		return trainer.Adversarial(step, trainer.Objective{Name: "a", Scope: "/a", Optimizer: plainSGD(0.01)}, trainer.Objective{Name: "b", Scope: "/b", Optimizer: plainSGD(0.01)})
	}
	for _, c := range []trainer.Config{{Precision: "32-true"}, {Precision: "bf16-true", AccumulateGradBatches: 3}} {
		norm := func(task trainer.Task) float64 {
			store := model.NewStore()
			store.SetParam("/"+regularizer.ParamL2, 10.0)
			c.Seed, c.MaxEpochs, c.BatchSize = 5, 3, 12
			tr, _ := newTrainer(t, c, task, trainer.WithStore(store))
			if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
				t.Fatal(err)
			}
			weights := trainedFloats(t, tr, "/a/logits/dense/weights")
			return distance(weights, make([]float64, len(weights)))
		}
		one, two := norm(supervised()), norm(several())
		if !(one < 0.5) || math.Abs(one-two) > 0.03*one {
			t.Errorf("%+v: the weights have the norm %g with one loss, %g with several", c, one, two)
		}
	}
}

// TestClippingInHalf: the length of a step is the rate times the norm, even if the norm is the sum
// over many equal tensors.
func TestClippingInHalf(t *testing.T) { everywhere(t, testClippingInHalf) }

func testClippingInHalf(t *testing.T) {
	tensors := 300
	if w := world(t); w.Size()*w.Devices() > 1 {
		tensors = 50 // XLA takes a minute to compile the collective of more.
	}
	wide := func(scope *model.Scope, x *graph.Node) *graph.Node {
		logits := layers.Dense(scope.In("logits"), graph.Reshape(x, x.Shape().Dimensions[0], -1), false, ranktest.Classes)
		for i := range tensors {
			bias := scope.In("%s", fmt.Sprintf("b%d", i)).WithInitializer(initializer.Zero).VariableWithShape("x", shapes.Make(x.DType(), 1, ranktest.Classes))
			logits = graph.Add(logits, bias.NodeValue(x))
		}
		return logits
	}
	after := func(rate float64) []float64 {
		task := trainer.Supervised(wide, loss.SparseCategoricalCrossEntropyLogits, plainSGD(rate))
		tr, _ := newTrainer(t, trainer.Config{Seed: 5, MaxSteps: 1, BatchSize: 144, GradientClipNorm: 1e-3, Precision: "bf16-true"}, task)
		if err := tr.Fit(t.Context(), ranktest.Blobs(144), nil); err != nil {
			t.Fatal(err)
		}
		return trainedFloats(t, tr, "/")
	}
	if d := distance(after(1e-30), after(1e6)); math.Abs(d-1000) > 20 {
		t.Errorf("a step is %g long, want 1000", d)
	}
}

// regression is Blobs with labels of a floating-point type.
type regression struct {
	ranktest.Blobs
	dtype dtypes.DType
}

func (r regression) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	inputs, _, err = r.Blobs.Batch(indices)
	if r.dtype == dtypes.Float64 {
		return inputs, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]float64, len(indices)), len(indices), 1)}, err
	}
	return inputs, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]float32, len(indices)), len(indices), 1)}, err
}

func TestLabelsOfAnotherType(t *testing.T) { everywhere(t, testLabelsOfAnotherType) }

func testLabelsOfAnotherType(t *testing.T) {
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(scope.In("y"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, 1)
	}
	squares := func(_ *model.Scope, labels, predictions []*graph.Node) *graph.Node {
		return loss.MeanSquaredError(labels, predictions)
	}
	step := func(scope *model.Scope, inputs, labels []*graph.Node) []*graph.Node {
		return []*graph.Node{graph.ReduceAllMean(graph.Square(graph.Sub(net(scope.In("a"), inputs[0]), labels[0])))}
	}
	for _, c := range []struct {
		precision string
		labels    dtypes.DType
	}{{"32-true", dtypes.Float64}, {"bf16-true", dtypes.Float32}, {"64-true", dtypes.Float32}} {
		for _, task := range []trainer.Task{
			trainer.Supervised(net, loss.MeanSquaredError, optimizer.Adam().Done(), metric.NewMeanMetric("Mean Squares", "#mse", "mse", squares, nil)),
			trainer.Adversarial(step, trainer.Objective{Name: "a", Scope: "/a", Optimizer: optimizer.Adam().Done()}),
		} {
			tr, _ := newTrainer(t, trainer.Config{MaxSteps: 2, BatchSize: 12, EvalBatchSize: 12, Precision: c.precision}, task)
			if err := tr.Fit(t.Context(), regression{145, c.labels}, regression{40, c.labels}); err != nil {
				t.Errorf("%s with labels of %s: %v", c.precision, c.labels, err)
			}
		}
	}
}
