package trainer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/distributed/ranktest"
	"gonbatch/models/cnn"
	"gonbatch/trainer"
)

// term is what a layer may add to the loss, of weights w from -3 to 3 and of a batch's numbers x.
type term struct {
	amount float64 // By which it is multiplied.
	add    func(amount float64, g *graph.Graph, w *model.Variable, x *graph.Node)
}

// withRegularizer returns the term of one of GoMLX's regularizers.
func withRegularizer(amount float64, r func(amount float64) regularizer.Regularizer) term {
	return term{amount, func(amount float64, g *graph.Graph, w *model.Variable, _ *graph.Node) { r(amount)(g, w) }}
}

var terms = map[string]term{
	"L2":       withRegularizer(0.01, regularizer.L2),
	"tiny L2":  withRegularizer(1e-9, regularizer.L2),
	"large L2": withRegularizer(3, regularizer.L2),
	"L1":       withRegularizer(1e-4, regularizer.L1),
	"constant": withRegularizer(1e-6, regularizer.ConstantL1),
	"L1 and L2": withRegularizer(1e-3, func(amount float64) regularizer.Regularizer {
		return regularizer.Combine(regularizer.L1(amount), regularizer.L2(amount))
	}),
	"own": {1e-5, func(amount float64, g *graph.Graph, w *model.Variable, _ *graph.Node) {
		rows := graph.Sqrt(graph.ReduceSum(graph.Square(w.NodeValue(g)), -1))
		train.AddRegularizationLoss(graph.MulScalar(graph.ReduceAllMax(graph.Slice(rows, graph.AxisRange(1))), amount))
	}},
	"of a product": {1e-7, func(amount float64, g *graph.Graph, w *model.Variable, _ *graph.Node) {
		square := graph.Dot(w.NodeValue(g), graph.Transpose(w.NodeValue(g), 0, 1)).Product()
		train.AddMainLoss(graph.MulScalar(graph.ReduceAllMean(graph.Square(graph.AddScalar(square, -0.3))), amount))
	}},
	"of the batch": {0.5, func(amount float64, g *graph.Graph, w *model.Variable, x *graph.Node) {
		scaled := graph.Mul(x, graph.ReduceAllMax(w.NodeValue(g)))
		train.AddRegularizationLoss(graph.MulScalar(graph.ReduceAllSum(graph.Square(scaled)), amount))
	}},
}

// TestTermsAreSingle: a term of the loss that depends only on weights has the gradient that it has
// in single precision. None overflows at the first loss scale, and none vanishes.
func TestTermsAreSingle(t *testing.T) {
	for name, term := range terms {
		t.Run(name, func(t *testing.T) {
			begin := term.fit(t, "32-true", 1e-30)
			probe := 1e-3 / term.amount
			rate := 0.5 * probe / distance(term.fit(t, "32-true", probe), begin)
			want := term.fit(t, "32-true", rate)
			for _, precision := range mixed {
				limit := 1e-5
				if name == "of the batch" { // It is rounded to half precision.
					limit = 0.02
				}
				if off := distance(term.fit(t, precision, rate), want) / distance(want, begin); !(off < limit) {
					t.Errorf("%s is off by %g of the way", precision, off)
				}
			}
		})
	}
}

// fit trains weights with nothing but the term, and returns them.
func (term term) fit(t *testing.T, precision string, rate float64) []float64 {
	t.Helper()
	ramp := func(g *graph.Graph, shape shapes.Shape) *graph.Node {
		numbers := graph.Reshape(graph.IotaFull(g, shapes.Make(shape.DType, shape.Size())), shape.Dimensions...)
		return graph.AddScalar(graph.MulScalar(numbers, 6/float64(shape.Size())), -3)
	}
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		w := scope.In("slope").WithInitializer(ramp).VariableWithShape("w", shapes.Make(x.DType(), 20, 50))
		term.add(term.amount, x.Graph(), w, x)
		return graph.Mul(x, graph.ReduceAllSum(graph.MulScalar(w.NodeValue(x), 0)))
	}
	mean := func(_, predictions []*graph.Node) *graph.Node { return graph.ReduceAllMean(predictions[0]) }
	c := trainer.Config{Precision: precision, MaxSteps: 2, MaxEpochs: 9, BatchSize: 4, Loggers: []string{"none"}}
	tr, _ := newTrainer(t, c, trainer.Supervised(net, mean, plainSGD(rate)))
	if err := tr.Fit(t.Context(), flat(16, 0), nil); err != nil {
		t.Fatal(err)
	}
	if precision == "16-mixed" {
		checkScale(t, tr)
	}
	return trainedFloats(t, tr, "/slope")
}

// checkScale: no gradient has overflowed at the first loss scale.
func checkScale(t *testing.T, tr *trainer.Trainer) {
	t.Helper()
	if scale, skipped := lossScale(t, tr); skipped > 0 {
		t.Errorf("%d updates overflowed, and the scale is %g", skipped, scale)
	}
}

// TestTermsOfHalf: the constants of a model that names its type of half precision, or can't be
// built in double precision, are those of half precision, and a warning says so, once.
func TestTermsOfHalf(t *testing.T) {
	for name, test := range map[string]struct {
		amount  float64
		convert func(x *graph.Node) *graph.Node
		want    string
	}{
		"as it asks":     {2e-8, func(x *graph.Node) *graph.Node { return graph.ConvertDType(x, trainer.ComputeDType(x)) }, ""},
		"by name, exact": {1.5, func(x *graph.Node) *graph.Node { return graph.ConvertDType(x, dtypes.Float16) }, ""},
		"by name": {2e-8, func(x *graph.Node) *graph.Node { return graph.ConvertDType(x, dtypes.Float16) },
			"may be rounded to Float16, one of them to 0, because the model names this type"},
		"not in double": {2e-8, func(x *graph.Node) *graph.Node {
			if x.DType() == dtypes.Float64 {
				panic("not in double precision")
			}
			return x
		}, "may be rounded to Float16, one of them to 0, because the model can't be built in Float64, from which they are taken: not in double precision"},
	} {
		t.Run(name, func(t *testing.T) {
			net := func(scope *model.Scope, x *graph.Node) *graph.Node {
				x = test.convert(x)
				w := scope.In("slope").WithInitializer(initializer.One).VariableWithShape("w", shapes.Make(x.DType()))
				regularizer.L2(test.amount)(x.Graph(), w)
				return graph.Mul(x, w.NodeValue(x))
			}
			mean := func(_, predictions []*graph.Node) *graph.Node { return graph.ReduceAllMean(predictions[0]) }
			c := trainer.Config{Precision: "16-mixed", MaxSteps: 2, MaxEpochs: 9, BatchSize: 4, Loggers: []string{"none"}}
			tr, out := newTrainer(t, c, trainer.Supervised(net, mean, plainSGD(0.1)))
			if err := tr.Fit(t.Context(), flat(16, 0), flat(16, 0)); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(out.String(), "constants of what layers add"); (n == 1) != (test.want != "") || !strings.Contains(out.String(), test.want) {
				t.Errorf("%d warnings, want %q:\n%s", n, test.want, out)
			}
		})
	}
}

// regularized is a network whose layers add terms to the loss, drawn at random.
type regularized struct {
	l1, l2, own, activity, large float64
}

func (r regularized) net(scope *model.Scope, x *graph.Node) *graph.Node {
	scope.SetParam(regularizer.ParamL1, r.l1)
	scope.SetParam(regularizer.ParamL2, r.l2)
	x = cnn.Convolution(scope.In("conv"), x).KernelSize(3).Channels(4).Done()
	x = graph.MaxScalar(cnn.BatchNorm(scope.In("norm"), x).Done(), 0)
	x = cnn.Convolution(scope.In("own"), x).KernelSize(1).Channels(3).Regularizer(regularizer.L2(r.own)).Done()
	if r.activity > 0 {
		train.AddRegularizationLoss(graph.MulScalar(graph.ReduceAllMean(graph.Square(x)), r.activity))
	}
	hundreds := func(g *graph.Graph, shape shapes.Shape) *graph.Node {
		return graph.MulScalar(initializer.One(g, shape), 300)
	}
	large := scope.In("large").WithInitializer(hundreds).VariableWithShape("w", shapes.Make(x.DType(), 200))
	if r.l2 > 0 {
		regularizer.L2(r.l2)(x.Graph(), large)
	}
	x = graph.Add(x, graph.MulScalar(graph.ReduceAllMean(large.NodeValue(x)), r.large))
	return layers.Dense(scope.In("logits"), flatOf(x), true, ranktest.Classes)
}

// TestRandomTerms: networks with terms drawn at random train in mixed precision as in single
// precision, also with accumulated and clipped gradients and averages of the weights.
func TestRandomTerms(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 4))
	draw := func(low, high float64) float64 {
		if random.IntN(3) == 0 {
			return 0
		}
		return math.Exp(math.Log(low) + random.Float64()*math.Log(high/low))
	}
	for i := range 5 {
		r := regularized{l1: draw(1e-8, 1e-3), l2: draw(1e-8, 0.3), own: draw(1e-6, 1), activity: draw(1e-4, 1), large: draw(1e-4, 1e-2)}
		c := trainer.Config{
			MaxSteps: 8, MaxEpochs: 99, BatchSize: 24, Seed: uint64(i), Loggers: []string{"none"}, AccumulateGradBatches: 1 + random.IntN(3),
			GradientClipNorm: draw(0.1, 3), EMADecay: []float64{0, 0.9}[random.IntN(2)],
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Logf("%+v, accumulate %d, clip %g, EMA %g", r, c.AccumulateGradBatches, c.GradientClipNorm, c.EMADecay)
			checkTerms(t, r, c)
		})
	}
}

func checkTerms(t *testing.T, r regularized, c trainer.Config) {
	t.Helper()
	fit := func(precision string, steps int, rate float64) (all []float64, metric float64) {
		c := c
		c.Precision, c.MaxSteps = precision, steps
		small := func(labels, predictions []*graph.Node) *graph.Node { // Its own gradients don't overflow.
			return graph.MulScalar(loss.SparseCategoricalCrossEntropyLogits(labels, predictions), 1./64)
		}
		task := trainer.Supervised(r.net, small, trainer.SGD{LearningRate: rate, Momentum: 0.9})
		tr, _ := newTrainer(t, c, task)
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
			t.Fatal(err)
		}
		if precision == "16-mixed" {
			checkScale(t, tr)
		}
		all = trainedFloats(t, tr, "/")
		if c.EMADecay > 0 {
			if err := tr.LoadAverage(); err != nil {
				t.Fatal(err)
			}
			all = append(all, trainedFloats(t, tr, "/")...)
		}
		metrics, err := tr.Test(t.Context(), ranktest.Blobs(50))
		if err != nil {
			t.Fatal(err)
		}
		return all, metrics["test/loss"]
	}
	begin, _ := fit("32-true", 1, 1e-30)
	want, single := fit("32-true", c.MaxSteps, 0.2)
	for _, precision := range mixed {
		got, value := fit(precision, c.MaxSteps, 0.2)
		off := distance(got, want) / distance(want, begin)
		t.Logf("%s: off by %.5f of the way, the loss is %g instead of %g", precision, off, value, single)
		if limit := map[string]float64{"bf16-mixed": 0.05, "16-mixed": 0.01}[precision]; !(off < limit) || math.Abs(value-single) > 0.05*math.Max(1, single) {
			t.Errorf("%s: off by %g of the way, the loss is %g instead of %g", precision, off, value, single)
		}
	}
}
