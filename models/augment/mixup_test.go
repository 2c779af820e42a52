package augment_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/models/augment"
	"gonbatch/models/modelstest"
)

// TestMixUp: each example is mixed with the one before it, by its own weight.
func TestMixUp(t *testing.T) {
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16} {
		for _, size := range [][]int{{1, 1, 1, 1}, {1, 4, 3, 3}, {2, 1, 1, 3}, {7, 4, 5, 4}, {6, 10}} {
			p := compiled(t, true, func(scope *model.Scope, x *graph.Node) []*graph.Node {
				x = graph.ConvertDType(x, dtype)
				y, w := augment.MixUp(scope, x, 0.9)
				w.AssertDims(size[0], 1)
				return []*graph.Node{graph.ConvertDType(x, dtypes.Float32), graph.ConvertDType(y, dtypes.Float32), w}
			})
			results := p.run(t, 1, modelstest.Noise(1, size...))
			x, got, weights := results[0], results[1], results[2]
			each := len(x) / size[0]
			want := make([]float32, len(x))
			for i := range x {
				row := i / each
				before := (row + size[0] - 1) % size[0]
				want[i] = weights[row]*x[i] + (1-weights[row])*x[before*each+i%each]
			}
			compare(t, got, want, tolerance(dtype, false))
			slices.Sort(weights)
			if distinct := slices.Compact(weights); len(distinct) != size[0] {
				t.Errorf("%d different weights of %d", len(distinct), size[0])
			}
		}
	}
}

// TestWeights compares the weights with the distribution Beta(alpha, alpha): where its cumulative
// distribution is known, by the test of Kolmogorov and Smirnov, and everywhere by its variance.
func TestWeights(t *testing.T) {
	const batch = 20_000
	for _, tt := range []struct {
		alpha      float64
		cumulative func(x float64) float64
	}{
		{1, func(x float64) float64 { return x }},
		{0.5, func(x float64) float64 { return 2 / math.Pi * math.Asin(math.Sqrt(x)) }},
		{0.2, nil},
		{1e-12, nil}, // Nearly always 0 or 1.
	} {
		p := compiled(t, true, func(scope *model.Scope, x *graph.Node) []*graph.Node {
			_, w := augment.MixUp(scope, x, tt.alpha)
			return []*graph.Node{w}
		})
		weights := p.run(t, 1, modelstest.Noise(1, batch, 1))[0]
		slices.Sort(weights)
		mean, variance, most := 0.0, 0.0, 0.0
		for i, w := range weights {
			mean += float64(w) / batch
			variance += (float64(w) - 0.5) * (float64(w) - 0.5) / batch
			if tt.cumulative != nil {
				most = max(most, math.Abs(tt.cumulative(float64(w))-(float64(i)+0.5)/batch))
			}
		}
		if want := 1 / (4 * (2*tt.alpha + 1)); math.Abs(mean-0.5) > 0.02 || math.Abs(variance-want) > 0.01 {
			t.Errorf("alpha %g: mean %g and variance %g, want 0.5 and %g", tt.alpha, mean, variance, want)
		}
		if most > 1.95/math.Sqrt(batch) { // 0.1 % of the distribution is beyond.
			t.Errorf("alpha %g: the cumulative distribution is off by %g", tt.alpha, most)
		}
	}
}

// TestMixUpLoss: the loss is that of mixed probabilities; outside of training, it is GoMLX's.
func TestMixUpLoss(t *testing.T) {
	classes := tensors.FromFlatDataAndDimensions([]int32{2, 0, 1, 2, 2}, 5, 1)
	for _, training := range []bool{true, false} {
		p := compiled(t, training, func(scope *model.Scope, x *graph.Node) []*graph.Node {
			y, w := augment.MixUp(scope, x, 1)
			labels := graph.ConstTensor(x.Graph(), classes)
			oneHot := graph.OneHot(graph.Squeeze(labels, 1), 3, dtypes.Float32)
			all := []*graph.Node{
				augment.MixUpLoss([]*graph.Node{labels}, []*graph.Node{y, w}),
				augment.MixUpLoss([]*graph.Node{oneHot}, []*graph.Node{y, w}),
				loss.CategoricalCrossEntropyLogits([]*graph.Node{augment.Mix(oneHot, w)}, []*graph.Node{y}),
			}
			if !training {
				all = append(all, graph.ReduceAllMean(loss.SparseCategoricalCrossEntropyLogits([]*graph.Node{labels}, []*graph.Node{x})))
			}
			return all
		})
		results := p.run(t, 1, modelstest.Noise(1, 5, 3))
		for _, other := range results[1:] {
			compare(t, other, results[0], 1e-6)
		}
	}
}
