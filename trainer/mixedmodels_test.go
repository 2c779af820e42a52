package trainer_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/attention"
	"github.com/gomlx/gomlx/ml/layers/fnn"
	"github.com/gomlx/gomlx/ml/layers/lstm"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/layers/rational"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/trainer"
)

// flatOf returns each example as a row.
func flatOf(x *graph.Node) *graph.Node { return graph.Reshape(x, x.Shape().Dimensions[0], -1) }

// rowsOf returns each example as a sequence.
func rowsOf(scope *model.Scope, x *graph.Node) *graph.Node {
	x = layers.Dense(scope.In("rows"), flatOf(x), true, 4*8)
	return graph.Reshape(x, x.Shape().Dimensions[0], 4, 8)
}

type netFn = func(scope *model.Scope, x *graph.Node) *graph.Node

// mixedNets are networks of all of GoMLX's layers, and such that do unusual things while they are
// built.
func mixedNets() map[string]netFn {
	logits := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(scope.In("logits"), flatOf(x), true, ranktest.Classes)
	}
	var whole, half *model.Variable
	return map[string]netFn{
		"BatchNorm": func(scope *model.Scope, x *graph.Node) *graph.Node {
			return logits(scope, norm.BatchNorm(scope.In("norm"), layers.Dense(scope.In("a"), flatOf(x), true, 8), -1).Done())
		},
		"LayerNorm": func(scope *model.Scope, x *graph.Node) *graph.Node {
			return logits(scope, norm.LayerNorm(scope.In("norm"), layers.Dense(scope.In("a"), flatOf(x), true, 8), -1).Done())
		},
		"RMSNorm": func(scope *model.Scope, x *graph.Node) *graph.Node {
			return logits(scope, norm.RMSNorm(scope.In("norm"), layers.Dense(scope.In("a"), flatOf(x), true, 8)).Done())
		},
		"DynamicTanh": func(scope *model.Scope, x *graph.Node) *graph.Node {
			return logits(scope, norm.DynamicTanh(scope.In("norm"), layers.Dense(scope.In("a"), flatOf(x), true, 8)).Done())
		},
		"attention": func(scope *model.Scope, x *graph.Node) *graph.Node {
			return logits(scope, attention.SelfAttention(scope.In("attention"), rowsOf(scope, x), 2, 4).Done())
		},
		"LSTM": func(scope *model.Scope, x *graph.Node) *graph.Node {
			_, last, _ := lstm.New(scope.In("lstm"), rowsOf(scope, x), 6).Done()
			return logits(scope, graph.Reshape(last, x.Shape().Dimensions[0], -1))
		},
		"rational": func(scope *model.Scope, x *graph.Node) *graph.Node {
			return logits(scope, rational.New(scope.In("rational"), layers.Dense(scope.In("a"), flatOf(x), true, 4)).Done())
		},
		"FNN": func(scope *model.Scope, x *graph.Node) *graph.Node {
			return fnn.New(scope.In("fnn"), flatOf(x), ranktest.Classes).NumHiddenLayers(2, 8).Activation(activation.TypeTanh).Done()
		},
		"embedding": func(scope *model.Scope, x *graph.Node) *graph.Node {
			bins := graph.ConvertDType(graph.Clip(graph.MulScalar(graph.Abs(flatOf(x)), 4), graph.ScalarZero(x.Graph(), x.DType()), graph.Scalar(x.Graph(), x.DType(), 7)), dtypes.Int32)
			return logits(scope, layers.Embedding(scope.In("bins"), graph.InsertAxes(bins, -1), x.DType(), 8, 3))
		},
		"tied": func(scope *model.Scope, x *graph.Node) *graph.Node {
			x = layers.Dense(scope.In("in"), flatOf(x), true, 8)
			x = graph.Tanh(layers.Dense(scope.In("tied"), x, true, 8))
			x = graph.Tanh(layers.Dense(scope.Shared("tied"), x, true, 8))
			return logits(scope, graph.Dot(x, scope.Shared("tied").In("dense").GetVariable("weights").NodeValue(x)).Product())
		},
		"both types": func(scope *model.Scope, x *graph.Node) *graph.Node {
			w := scope.In("w").VariableWithShape("w", shapes.Make(dtypes.Float32, 5, 8))
			x = graph.Dot(layers.Dense(scope.In("a"), flatOf(x), true, 5), graph.ConvertDType(w.NodeValue(x), x.DType())).Product()
			return graph.Add(logits(scope, x), graph.ConvertDType(graph.ReduceAllMean(graph.Square(w.NodeValue(x))), x.DType()))
		},
		"looks up what it has made": func(scope *model.Scope, x *graph.Node) *graph.Node {
			if scope.IsTraining(x.Graph()) {
				scope.In("made").WithInitializer(initializer.One).VariableWithShape("factor", shapes.Make(x.DType()))
			}
			return logits(scope, graph.Mul(x, scope.Store().GetVariable("/made/factor").NodeValue(x)))
		},
		"looks up": func(scope *model.Scope, x *graph.Node) *graph.Node {
			v := scope.In("given").GetVariable("factor")
			return logits(scope, graph.Mul(x, graph.ConvertDType(v.NodeValue(x), x.DType())))
		},
		"looks up what may be there": func(scope *model.Scope, x *graph.Node) *graph.Node {
			if v := scope.In("given").GetVariable("factor"); v != nil {
				x = graph.Mul(x, graph.ConvertDType(v.NodeValue(x), x.DType()))
			}
			if scope.In("none").GetVariable("factor") != nil {
				panic("there is none")
			}
			return logits(scope, x)
		},
		"keeps a variable": func(scope *model.Scope, x *graph.Node) *graph.Node {
			if whole == nil {
				whole = scope.VariableWithValue("whole", float32(1.5))
				half = scope.VariableWithValue("half", shapes.CastAsDType(0.5, x.DType()))
			}
			return logits(scope, graph.Mul(graph.Mul(x, half.NodeValue(x)), graph.ConvertDType(whole.NodeValue(x), x.DType())))
		},
		"clips its weights": func(scope *model.Scope, x *graph.Node) *graph.Node {
			w := scope.In("clipped").VariableWithShape("w", shapes.Make(x.DType(), flatOf(x).Shape().Dimensions[1], 8))
			w.SetNodeValue(graph.ClipScalar(w.NodeValue(x), -0.1, 0.1))
			return logits(scope, graph.Dot(flatOf(x), w.NodeValue(x)).Product())
		},
		"writes a buffer": func(scope *model.Scope, x *graph.Node) *graph.Node {
			scope.In("half").WithInitializer(initializer.Zero).VariableWithShape("last", shapes.Make(x.DType())).SetTrainable(false).SetNodeValue(graph.ReduceAllMean(x))
			scope.In("whole").WithInitializer(initializer.Zero).VariableWithShape("last", shapes.Make(dtypes.Float32)).SetTrainable(false).SetNodeValue(graph.ConvertDType(graph.ReduceAllMean(x), dtypes.Float32))
			return logits(scope, x)
		},
		"reads the step": func(scope *model.Scope, x *graph.Node) *graph.Node {
			step := graph.ConvertDType(optimizer.GetGlobalStepVar(scope.Store()).NodeValue(x), x.DType())
			return logits(scope, graph.Div(x, graph.AddScalar(graph.MulScalar(step, 0.1), 1)))
		},
		"regularized": func(scope *model.Scope, x *graph.Node) *graph.Node {
			scope.SetParam(regularizer.ParamL2, 0.01)
			return logits(scope, x)
		},
		"L1": func(scope *model.Scope, x *graph.Node) *graph.Node {
			scope.SetParam(regularizer.ParamL1, 0.001)
			return logits(scope, x)
		},
	}
}

// TestMixedModels: the networks train in mixed precision as in single precision.
func TestMixedModels(t *testing.T) {
	for _, name := range tier.Fewer(slices.Sorted(maps.Keys(mixedNets())), 4) {
		t.Run(name, func(t *testing.T) {
			fit := func(precision string, steps int, rate float64) (all []float64, shape map[string]string, skipped int32) {
				net := mixedNets()[name]
				store := model.NewStore()
				if strings.HasPrefix(name, "looks up") {
					if _, err := store.CreateVariable("/given/factor", tensors.FromScalar(float32(0.5))); err != nil {
						t.Fatal(err)
					}
					store.GetVariable("/given/factor").SetTrainable(false)
				}
				c := trainer.Config{Precision: precision, MaxSteps: steps, MaxEpochs: 9, BatchSize: 24, Seed: 5, Loggers: []string{"none"}}
				tr, out := newTrainer(t, c, trainer.Supervised(net, loss.SparseCategoricalCrossEntropyLogits, plainSGD(rate)), trainer.WithStore(store))
				if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(30)); err != nil {
					t.Fatalf("%s: %v", precision, err)
				}
				if strings.Contains(out.String(), "ComputeDType") {
					t.Errorf("%s: %s", precision, out)
				}
				shape = map[string]string{}
				for v := range tr.Store().IterVariables() {
					if !strings.HasPrefix(v.Path(), "/optimizers/") && !strings.HasPrefix(v.Path(), "/metrics/") {
						shape[v.Path()] = v.Shape().String() + map[bool]string{true: " trained"}[v.Trainable]
					}
				}
				if precision == "16-mixed" {
					_, skipped = lossScale(t, tr)
				}
				return trainedFloats(t, tr, "/"), shape, skipped
			}
			begin, _, _ := fit("32-true", 1, 1e-9)
			want, wantShapes, _ := fit("32-true", 12, 0.05)
			way := distance(want, begin)
			for _, precision := range mixed {
				if first, _, skipped := fit(precision, 1, 1e-9); distance(first, begin) > 1e-6 && skipped == 0 && name != "clips its weights" {
					t.Errorf("%s begins %g from the weights of 32-true", precision, distance(first, begin))
				}
				got, its, skipped := fit(precision, 12, 0.05)
				for path, shape := range wantShapes {
					if its[path] != shape {
						t.Errorf("%s: %s is %q, want %q", precision, path, its[path], shape)
					}
				}
				if len(its) != len(wantShapes) {
					t.Errorf("%s: %v, want %v", precision, its, wantShapes)
				}
				off := distance(got, want) / way
				t.Logf("%s: off by %.4f of the way", precision, off)
				if limit := map[string]float64{"bf16-mixed": 0.1, "16-mixed": 0.05}[precision] + 0.2*float64(skipped); !(off < limit) || skipped > 1 {
					t.Errorf("%s: off by %g of the way", precision, off)
				}
			}
		})
	}
}

// TestMixedKept: a model that asks for a variable only when it is built first has an error, and not
// a variable without its initial value.
func TestMixedKept(t *testing.T) {
	for _, precision := range mixed {
		var kept *model.Variable
		net := func(scope *model.Scope, x *graph.Node) *graph.Node {
			if kept == nil {
				kept = scope.WithInitializer(initializer.One).VariableWithShape("kept", shapes.Make(x.DType()))
			}
			return plainNet(scope, graph.Mul(x, kept.NodeValue(x)))
		}
		c := trainer.Config{Precision: precision, MaxSteps: 2, BatchSize: 24, Loggers: []string{"none"}}
		tr, _ := newTrainer(t, c, trainer.Supervised(net, loss.SparseCategoricalCrossEntropyLogits, plainSGD(0.05)))
		if err := tr.Fit(t.Context(), ranktest.Blobs(48), nil); err == nil || !strings.Contains(err.Error(), "the model asked for the variable /kept when it was built first") {
			t.Errorf("%s: %v", precision, err)
		}
	}
}
