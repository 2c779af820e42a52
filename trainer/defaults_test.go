package trainer_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/models"
	"gonbatch/models/cnn"
	"gonbatch/trainer"
)

// TestDefaultsOfPyTorch: the table in docs/lightning.md says which layers, losses, optimizers and
// initializers do by default what PyTorch's do, and how to get that from the others. The numbers
// are PyTorch's: see testdata/writedefaults.py.
func TestDefaultsOfPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/defaults.json")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../docs/lightning.md")
	if err != nil {
		t.Fatal(err)
	}
	var torch map[string][]float64
	if err := json.Unmarshal(text, &torch); err != nil {
		t.Fatal(err)
	}
	d := defaultsOf{t, torch}
	type build = func(*model.Scope, *graph.Node) *graph.Node
	plain := func(f func(*graph.Node) *graph.Node) build {
		return func(_ *model.Scope, x *graph.Node) *graph.Node { return f(x) }
	}
	ownNorm := func(s *model.Scope, x *graph.Node) *graph.Node { return cnn.BatchNorm(s, x).Done() }
	layerNorm := func(epsilon float64) build {
		return func(s *model.Scope, x *graph.Node) *graph.Node {
			b := norm.LayerNorm(s, x, -1)
			if epsilon > 0 {
				b = b.Epsilon(epsilon)
			}
			return b.Done()
		}
	}
	rmsNorm := func(epsilon float64) build {
		return func(s *model.Scope, x *graph.Node) *graph.Node {
			b := norm.RMSNorm(s, x)
			if epsilon > 0 {
				b = b.WithEpsilon(epsilon)
			}
			return b.Done()
		}
	}
	uniform := func(fan float64) func(*model.Scope) model.VariableInitializer {
		return func(s *model.Scope) model.VariableInitializer {
			return initializer.RandomUniformFn(s, -1/math.Sqrt(fan), 1/math.Sqrt(fan))
		}
	}
	dense := func(s *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(s, graph.Zeros(x.Graph(), shapes.Make(dtypes.Float32, 1, 400)), true, 300)
	}
	convolution := func(s *model.Scope, x *graph.Node) *graph.Node {
		return cnn.Convolution(s, graph.Zeros(x.Graph(), shapes.Make(dtypes.Float32, 1, 3, 3, 40))).Channels(50).KernelSize(3).Done()
	}
	embedding := func(s *model.Scope, x *graph.Node) *graph.Node {
		return layers.Embedding(s, graph.Zeros(x.Graph(), shapes.Make(dtypes.Int32, 1, 1)), dtypes.Float32, 1000, 100)
	}
	spread := func(f build, variable string, initial func(*model.Scope) model.VariableInitializer) func() []float64 {
		return func() []float64 { return d.spread(f, variable, initial) }
	}
	normal := func(s *model.Scope) model.VariableInitializer { return initializer.RandomNormalFn(s, 1) }
	for _, row := range []struct {
		name         string
		here, thatOf func() []float64 // thatOf has PyTorch's settings; nil if there is nothing to set.
	}{
		{"batch norm in training", d.layer(ownNorm, ""), nil},
		{"batch norm's running mean", d.layer(ownNorm, "mean"), nil},
		{"batch norm's running variance", d.layer(ownNorm, "variance"), nil},
		{"layer norm", d.layer(layerNorm(0), ""), d.layer(layerNorm(1e-5), "")},
		{"RMS norm", d.layer(rmsNorm(0), ""), d.layer(rmsNorm(1.1920929e-7), "")},
		{"leaky ReLU", d.layer(plain(activation.LeakyRelu), ""), d.layer(plain(func(x *graph.Node) *graph.Node { return activation.LeakyReluWith(x, 0.01) }), "")},
		{"GELU", d.layer(plain(activation.Gelu), ""), nil},
		{"SiLU", d.layer(plain(activation.Swish), ""), nil},
		{"SELU", d.layer(plain(activation.Selu), ""), nil},
		{"hard sigmoid", d.layer(plain(activation.HardSigmoid), ""), d.layer(plain(func(x *graph.Node) *graph.Node { return activation.HardSigmoidWith(x, 1./6, 0.5) }), "")},
		{"hard swish", d.layer(plain(activation.HardSwish), ""), nil},
		{"dropout of 0.3", d.dropout, nil},
		{"cross-entropy", d.loss(loss.SparseCategoricalCrossEntropyLogits, true), nil},
		{"cross-entropy with label smoothing of 0.1", d.loss(models.SmoothedCrossEntropy(0.1), true), nil},
		{"mean squared error", d.loss(loss.MeanSquaredError, false), nil},
		{"mean absolute error", d.loss(loss.MeanAbsoluteError, false), nil},
		{"Huber loss", d.loss(loss.MakeHuberLoss(1), false), nil},
		{"binary cross-entropy with logits", d.loss(loss.BinaryCrossentropyLogits, false), nil},
		{"Adam", d.optimizer(optimizer.Adam().Done()), d.optimizer(optimizer.Adam().Epsilon(1e-8).Done())},
		{"AdamW", d.optimizer(optimizer.Adam().Done()), d.optimizer(optimizer.Adam().Epsilon(1e-8).WeightDecay(0.01).Done())},
		{"Adamax", d.optimizer(optimizer.Adam().Adamax().Done()), d.optimizer(optimizer.Adam().Adamax().LearningRate(0.002).Epsilon(1e-8).Done())},
		{"RMSprop", d.optimizer(optimizer.RMSProp().Done()), nil},
		{"SGD", d.optimizer(trainer.SGD{LearningRate: 0.001}), nil},
		{"SGD with momentum", d.optimizer(trainer.SGD{LearningRate: 0.001, Momentum: 0.9}), nil},
		{"weights of a dense layer", spread(dense, "weights", nil), spread(dense, "weights", uniform(400))},
		{"biases of a dense layer", spread(dense, "biases", nil), spread(dense, "biases", uniform(400))},
		{"weights of a convolution", spread(convolution, "weights", nil), spread(convolution, "weights", uniform(40*9))},
		{"biases of a convolution", spread(convolution, "biases", nil), spread(convolution, "biases", uniform(40*9))},
		{"an embedding", spread(embedding, "embeddings", nil), spread(embedding, "embeddings", normal)},
	} {
		want, line := torch[row.name], lineOf(t, string(docs), "| "+row.name+" |")
		random := strings.HasPrefix(row.name, "weights of") || strings.HasPrefix(row.name, "biases of") || row.name == "an embedding" || strings.HasPrefix(row.name, "dropout")
		same := alike(row.here(), want, random)
		switch {
		case same != strings.Contains(line, "| the same |"):
			t.Errorf("%s: %v by default, %v in PyTorch, but docs/lightning.md says: %s", row.name, row.here(), want, line)
		case row.thatOf != nil && !alike(row.thatOf(), want, random):
			t.Errorf("%s: %v with PyTorch's settings, want %v", row.name, row.thatOf(), want)
		case !same && (row.thatOf == nil) != strings.Contains(line, "| none"):
			t.Errorf("%s: the test has PyTorch's settings: %v, but docs/lightning.md says: %s", row.name, row.thatOf != nil, line)
		}
	}
}

// alike compares numbers, up to rounding or, if they are random, up to their noise.
func alike(got, want []float64, random bool) bool {
	limit := 2e-6
	if random {
		limit = 0.05
	}
	return slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) <= limit*math.Abs(b)+1e-6 })
}

// lineOf returns the line of a text that begins like this.
func lineOf(t *testing.T, text, begin string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begin) {
			return line
		}
	}
	t.Fatalf("docs/lightning.md has no line %q", begin)
	return ""
}

// defaultsOf computes what PyTorch has computed.
type defaultsOf struct {
	t     *testing.T
	torch map[string][]float64
}

// call builds a graph in training, and returns its results.
func (d defaultsOf) call(store *model.Store, f func(scope *model.Scope, in []*graph.Node) []*graph.Node, args ...any) [][]float64 {
	d.t.Helper()
	exec, err := model.NewExec(world(d.t).Backend(), store, func(scope *model.Scope, in []*graph.Node) []*graph.Node {
		store.SetTraining(in[0].Graph(), true)
		return f(scope, in)
	})
	if err != nil {
		d.t.Fatal(err)
	}
	results, err := exec.Call(args...)
	if err != nil {
		d.t.Fatal(err)
	}
	var all [][]float64
	for _, r := range results {
		all = append(all, floatsOf(d.t, r))
	}
	return all
}

// tensor returns one of the inputs.
func (d defaultsOf) tensor(name string, dims ...int) *tensors.Tensor {
	var values []float32
	for _, x := range d.torch[name] {
		values = append(values, float32(x))
	}
	return tensors.FromFlatDataAndDimensions(values, dims...)
}

// layer returns what a layer computes or, after a second batch, one of its variables.
func (d defaultsOf) layer(f func(*model.Scope, *graph.Node) *graph.Node, variable string) func() []float64 {
	return func() []float64 {
		store := model.NewStore()
		build := func(scope *model.Scope, in []*graph.Node) []*graph.Node { return []*graph.Node{f(scope, in[0])} }
		out := d.call(store, build, d.tensor("x", 3, 4))[0]
		if variable == "" {
			return out
		}
		d.call(store, func(scope *model.Scope, in []*graph.Node) []*graph.Node {
			return build(scope, []*graph.Node{graph.MulScalar(in[0], 2)})
		}, d.tensor("x", 3, 4))
		for v := range store.IterVariables() {
			if v.Name() == variable {
				return floatsOf(d.t, v.MustValue())
			}
		}
		return nil
	}
}

func (d defaultsOf) dropout() []float64 {
	out := d.call(model.NewStore(), func(scope *model.Scope, in []*graph.Node) []*graph.Node {
		return []*graph.Node{layers.DropoutStatic(scope, graph.Ones(in[0].Graph(), shapes.Make(dtypes.Float32, 100_000)), 0.3)}
	}, float32(0))[0]
	most, zeros := 0., 0.
	for _, x := range out {
		most = max(most, x)
		if x == 0 {
			zeros++
		}
	}
	return []float64{most, zeros / float64(len(out))}
}

func (d defaultsOf) loss(f loss.LossFn, sparse bool) func() []float64 {
	return func() []float64 {
		labels := d.tensor("targets", 3, 4)
		if sparse {
			labels = d.tensor("classes", 3, 1)
		}
		return d.call(model.NewStore(), func(_ *model.Scope, in []*graph.Node) []*graph.Node {
			if sparse {
				in[1] = graph.ConvertDType(in[1], dtypes.Int32)
			}
			return []*graph.Node{graph.ReduceAllMean(f(in[1:], in[:1]))}
		}, d.tensor("x", 3, 4), labels)[0]
	}
}

// optimizer returns the weights after three updates.
func (d defaultsOf) optimizer(o optimizer.Interface) func() []float64 {
	return func() []float64 {
		store := model.NewStore()
		var got [][]float64
		for i := range 3 {
			got = d.call(store, func(scope *model.Scope, in []*graph.Node) []*graph.Node {
				v := scope.VariableWithValue("w", d.tensor("weights", 3))
				v.NodeValue(in[0].Graph())
				o.(train.OptimizeWithGradients).UpdateGraphWithGradients(scope, []*graph.Node{graph.Slice(in[0], graph.AxisRange(3*i, 3*i+3))}, dtypes.Float32)
				return []*graph.Node{v.NodeValue(in[0].Graph())}
			}, d.tensor("gradients", 9))
		}
		return got[0]
	}
}

// spread returns the standard deviation and the mean size of a new variable's numbers.
func (d defaultsOf) spread(f func(*model.Scope, *graph.Node) *graph.Node, variable string, initial func(*model.Scope) model.VariableInitializer) []float64 {
	store := model.NewStore()
	store.SetParam("/"+model.ParamInitialSeed, int64(1))
	d.call(store, func(scope *model.Scope, in []*graph.Node) []*graph.Node {
		if initial != nil {
			scope = scope.WithInitializer(initial(scope))
		}
		return []*graph.Node{f(scope, in[0])}
	}, float32(0))
	for v := range store.IterVariables() {
		if v.Name() != variable {
			continue
		}
		sum, squares, sizes := 0., 0., 0.
		values := floatsOf(d.t, v.MustValue())
		for _, x := range values {
			sum, squares, sizes = sum+x, squares+x*x, sizes+math.Abs(x)
		}
		n := float64(len(values))
		return []float64{math.Sqrt(squares/n - sum*sum/n/n), sizes / n}
	}
	d.t.Fatalf("there is no variable %q", variable)
	return nil
}
