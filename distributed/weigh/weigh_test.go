package weigh_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/distributed"
	"gonbatch/distributed/weigh"
)

// TestMean: of means that people write, weigh finds what they divide by. Their value stays, or is 0
// where nothing counts.
func TestMean(t *testing.T) {
	w, err := distributed.Init()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	f32 := func(x *graph.Node) *graph.Node { return graph.ConvertDType(x, dtypes.Float32) }
	sum := graph.ReduceAllSum
	squares := func(x, y *graph.Node) *graph.Node { return graph.Square(graph.Sub(x, y)) }
	masked := func(x, y, m *graph.Node) *graph.Node { return sum(graph.Where(m, squares(x, y), graph.ZerosLike(x))) }
	for name, test := range map[string]struct {
		mean   func(x, y, m *graph.Node) *graph.Node // Of predictions, labels and a mask, [4] each.
		metric bool
		want   float64 // The weight, with two labels of four; 0 for none.
		mixed  bool
	}{
		"GoMLX's, plain": {mean: func(x, y, _ *graph.Node) *graph.Node {
			return loss.MeanSquaredError([]*graph.Node{y}, []*graph.Node{x})
		}},
		"GoMLX's, masked": {mean: func(x, y, m *graph.Node) *graph.Node {
			return loss.MeanSquaredError([]*graph.Node{y, m}, []*graph.Node{x})
		}, want: 2},
		"GoMLX's, weighted": {mean: func(x, y, m *graph.Node) *graph.Node {
			return loss.MeanSquaredError([]*graph.Node{y, f32(m)}, []*graph.Node{x})
		}},
		"by hand": {mean: func(x, y, m *graph.Node) *graph.Node { return graph.Div(masked(x, y, m), sum(f32(m))) }, want: 2},
		"with a limit": {mean: func(x, y, m *graph.Node) *graph.Node {
			return graph.Div(masked(x, y, m), graph.MaxScalar(sum(f32(m)), 1))
		}, want: 2},
		"guarded": {mean: func(x, y, m *graph.Node) *graph.Node {
			n := sum(f32(m))
			return graph.Where(graph.Equal(n, graph.ZerosLike(n)), graph.ZerosLike(n), graph.Div(masked(x, y, m), n))
		}, want: 2},
		"reciprocal": {mean: func(x, y, m *graph.Node) *graph.Node {
			return graph.Mul(masked(x, y, m), graph.Reciprocal(sum(f32(m))))
		}, want: 2},
		"scaled, reduced again": {mean: func(x, y, m *graph.Node) *graph.Node {
			return graph.ReduceAllMean(graph.AddScalar(graph.MulScalar(graph.Div(masked(x, y, m), sum(f32(m))), 3), 1))
		}, want: 2},
		"integers": {mean: func(x, y, m *graph.Node) *graph.Node {
			return graph.Div(masked(x, y, m), f32(sum(graph.ConvertDType(m, dtypes.Int32))))
		}, want: 2},
		"ignored labels": {mean: func(x, y, _ *graph.Node) *graph.Node {
			m := graph.NotEqual(y, graph.ScalarZero(y.Graph(), y.DType()))
			return graph.Div(masked(x, y, m), sum(f32(m)))
		}, want: 3},
		"twice the same": {mean: func(x, y, m *graph.Node) *graph.Node {
			one := func() *graph.Node { return loss.MeanSquaredError([]*graph.Node{y, m}, []*graph.Node{x}) }
			return graph.Add(one(), one())
		}, want: 2},
		"plus a constant": {mean: func(x, y, m *graph.Node) *graph.Node {
			return graph.Add(graph.Div(masked(x, y, m), sum(f32(m))), graph.Scalar(x.Graph(), x.DType(), 2))
		}, want: 2},
		"mean by mean": {mean: func(x, y, m *graph.Node) *graph.Node {
			return graph.Div(graph.ReduceAllMean(graph.Mul(squares(x, y), f32(m))), graph.MaxScalar(graph.ReduceAllMean(f32(m)), 1e-6))
		}, want: 2},
		"divided before the sum": {mean: func(x, y, m *graph.Node) *graph.Node {
			return sum(graph.Div(graph.Mul(squares(x, y), f32(m)), sum(f32(m))))
		}, want: 2},
		"normalized weights": {mean: func(x, y, m *graph.Node) *graph.Node {
			return graph.ReduceAllMean(graph.Mul(squares(x, y), graph.Div(f32(m), graph.ReduceAllMean(f32(m)))))
		}, want: 2},
		"limit, the other way round": {mean: func(x, y, m *graph.Node) *graph.Node {
			n := sum(f32(m))
			return graph.Div(masked(x, y, m), graph.Where(graph.GreaterThan(n, graph.ZerosLike(n)), n, graph.OnesLike(n)))
		}, want: 2},
		"limits": {mean: func(x, y, m *graph.Node) *graph.Node {
			return graph.Div(masked(x, y, m), graph.AddScalar(graph.ClipScalar(sum(f32(m)), 1, 1e9), 1e-8))
		}, want: 2},
		"the same twice, written again": {mean: func(x, y, _ *graph.Node) *graph.Node {
			one := func(limit float64) *graph.Node {
				m := graph.Not(graph.Equal(y, graph.ScalarZero(y.Graph(), y.DType())))
				return graph.Div(masked(x, y, m), graph.MaxScalar(sum(f32(m)), limit))
			}
			return graph.Add(one(1), one(1e-6))
		}, want: 3},
		"the same twice, with constants": {mean: func(x, y, _ *graph.Node) *graph.Node {
			one := func() *graph.Node {
				m := graph.LogicalAnd(graph.NotEqual(y, graph.Const(y.Graph(), float32(7))), graph.LessThan(graph.IotaFull(y.Graph(), y.Shape()), graph.Const(y.Graph(), float32(3))))
				return graph.Div(masked(x, y, m), sum(f32(m)))
			}
			return graph.Add(one(), one())
		}, want: 3},
		"stopped gradient": {mean: func(x, y, _ *graph.Node) *graph.Node {
			sure := graph.StopGradient(f32(graph.GreaterThan(x, graph.Scalar(x.Graph(), x.DType(), 2.5))))
			return graph.Div(sum(graph.Mul(squares(x, y), sure)), sum(sure))
		}, want: 2},
		"labels that are not there": {mean: func(x, y, m *graph.Node) *graph.Node {
			y = graph.Where(m, y, graph.Div(graph.ZerosLike(y), graph.ZerosLike(y)))
			known := graph.Not(graph.IsNaN(y))
			return graph.Div(sum(graph.Where(known, squares(x, y), graph.ZerosLike(x))), sum(f32(known)))
		}, want: 2},
		"ratio of ratios": {mean: func(x, y, m *graph.Node) *graph.Node {
			n := graph.MaxScalar(sum(f32(m)), 1)
			p, r := graph.Div(masked(x, y, m), n), graph.Div(sum(y), n)
			return graph.Mul(p, r)
		}},
		"different": {mean: func(x, y, m *graph.Node) *graph.Node {
			return graph.Add(graph.Div(masked(x, y, m), sum(f32(m))), graph.ReduceAllMean(squares(x, y)))
		}, mixed: true},
		"each example's own": {mean: func(x, y, m *graph.Node) *graph.Node {
			rows := func(n *graph.Node) *graph.Node { return graph.ReduceSum(graph.Reshape(n, 2, 2), 1) }
			return graph.ReduceAllMean(graph.Div(rows(squares(x, y)), graph.AddScalar(rows(f32(m)), 1)))
		}},
		"precision": {mean: func(x, y, _ *graph.Node) *graph.Node {
			found := f32(graph.GreaterThan(x, graph.Scalar(x.Graph(), x.DType(), 2.5)))
			return graph.Div(sum(graph.Mul(found, y)), sum(found))
		}, metric: true, want: 2},
		"precision as a loss": {mean: func(x, y, _ *graph.Node) *graph.Node { return graph.Div(sum(graph.Mul(x, y)), sum(x)) }},
		"no sum": {mean: func(x, y, m *graph.Node) *graph.Node {
			return graph.Div(sum(squares(x, y)), graph.Sqrt(sum(f32(m))))
		}},
		"accuracy": {mean: func(x, y, m *graph.Node) *graph.Node {
			logits, classes := graph.Stack([]*graph.Node{x, y}, 1), graph.InsertAxes(graph.ConvertDType(y, dtypes.Int32), 1)
			return metric.SparseCategoricalAccuracyGraph(nil, []*graph.Node{classes, m}, []*graph.Node{logits})
		}, metric: true, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			store := model.NewStore()
			var mixed, weighs bool
			exec, err := model.NewExec(w.Backend(), store, func(scope *model.Scope, in []*graph.Node) []*graph.Node {
				x := graph.Add(in[0], scope.WithInitializer(initializer.Zero).VariableWithShape("w", shapes.Make(dtypes.Float32, 4)).NodeValue(in[0]))
				value := test.mean(x, in[1], in[2])
				of := weigh.Loss
				if test.metric {
					of = weigh.Metric
				}
				mean := of(store, value)
				mixed, weighs = mean.Mixed, mean.Weight != nil
				weight := mean.Weight
				if weight == nil {
					weight = graph.ScalarZero(value.Graph(), dtypes.Float32)
				}
				return []*graph.Node{value, mean.Value, weight}
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, mask := range [][]bool{{true, false, false, true}, {false, false, false, false}} {
				results, err := exec.Call([]float32{1, 2, 3, 4}, []float32{1, 0, 1, 1}, mask)
				if err != nil {
					t.Fatal(err)
				}
				plain, value, weight := results[0].Value().(float32), results[1].Value().(float32), results[2].Value().(float32)
				if any := mask[0]; any && (value != plain || float64(weight) != test.want) || !any && math.IsNaN(float64(value)) {
					t.Errorf("mask %v: the mean is %g, want %g; the weight is %g, want %g", mask, value, plain, weight, test.want)
				}
			}
			if mixed != test.mixed || weighs != (test.want > 0) {
				t.Errorf("mixed is %v, want %v; there is a weight: %v", mixed, test.mixed, weighs)
			}
		})
	}
}
