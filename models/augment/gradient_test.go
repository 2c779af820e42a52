package augment_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/models/augment"
	"gonbatch/models/modelstest"
)

var linears = []struct {
	name  string
	graph function
}{
	{"flip", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomFlip(s, x, 0.5) }},
	{"crop", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomCrop(s, x, 3) }},
	{"flip of crop", func(s *model.Scope, x *graph.Node) *graph.Node {
		return augment.RandomFlip(s, augment.RandomCrop(s, x, 2), 0.5)
	}},
	{"resized crop", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomResizedCrop(s, x, 0.2) }},
	{"smaller", sizing(3, 2)},
	{"larger", sizing(9, 8)},
	{"middle", func(_ *model.Scope, x *graph.Node) *graph.Node {
		d := x.Shape().Dimensions
		return augment.CenterCrop(x, (d[1]+1)/2, (d[2]+1)/2)
	}},
	{"mixup", func(s *model.Scope, x *graph.Node) *graph.Node { y, _ := augment.MixUp(s, x, 1); return y }},
}

// TestGradients: with the same random numbers, these functions are linear. So the gradient g of
// sum(w·f(x)) doesn't depend on x, and sum(g·z) is sum(w·f(z)) for other images z.
func TestGradients(t *testing.T) {
	for _, size := range [][]int{{1, 1, 1, 1}, {5, 1, 7, 3}, {4, 8, 5, 4}, {1, 6, 6, 3}} {
		p := compiled(t, true, func(s *model.Scope, x *graph.Node) (all []*graph.Node) {
			for _, f := range linears {
				y := f.graph(s, x)
				loss := graph.ReduceAllSum(graph.Mul(y, wave(y)))
				all = append(all, loss, graph.Gradient(loss, x)[0])
			}
			return all
		})
		z := modelstest.Noise(2, size...)
		results, others := p.run(t, 4, modelstest.Noise(1, size...)), p.run(t, 4, z)
		for i, f := range linears {
			loss := float64(others[2*i][0])
			if sum := dot(results[2*i+1], modelstest.Values(t, z)); math.Abs(sum-loss) > 1e-4 {
				t.Errorf("%s of %v: the loss is %g by the gradient, want %g", f.name, size, sum, loss)
			}
		}
	}
}

// TestSecondGradients: a loss may contain a gradient, as a penalty for large gradients does. The
// gradient G(x) of sum(w·f(x)²)/2 is linear and symmetric, so that of sum(G(x)·z) is G(z).
func TestSecondGradients(t *testing.T) {
	size := []int{4, 5, 6, 3}
	z := modelstest.Noise(2, size...)
	twice := linears[:3]
	p := compiled(t, true, func(s *model.Scope, x *graph.Node) (all []*graph.Node) {
		for _, f := range twice {
			y := f.graph(s, x)
			first := graph.Gradient(graph.ReduceAllSum(graph.Mul(graph.Mul(y, y), graph.MulScalar(wave(y), 0.5))), x)[0]
			all = append(all, first, graph.Gradient(graph.ReduceAllSum(graph.Mul(first, graph.ConstTensor(x.Graph(), z))), x)[0])
		}
		return all
	})
	results, others := p.run(t, 4, modelstest.Noise(1, size...)), p.run(t, 4, z)
	for i, f := range twice {
		t.Run(f.name, func(t *testing.T) { compare(t, results[2*i+1], others[2*i], 1e-5) })
	}
}

// TestColorGradient compares with differences.
func TestColorGradient(t *testing.T) {
	p := compiled(t, true, func(s *model.Scope, x *graph.Node) []*graph.Node {
		y := augment.RandomColor(s, x, 0.3, 0.3, 0.3)
		loss := graph.ReduceAllSum(graph.Mul(y, wave(y)))
		return []*graph.Node{loss, graph.Gradient(loss, x)[0]}
	})
	size := []int{2, 3, 3, 3}
	x := modelstest.Values(t, pixels(1, size...))
	for i := range x {
		x[i] = 0.4 + 0.2*x[i] // So that none is clipped.
	}
	gradient := p.run(t, 1, tensors.FromFlatDataAndDimensions(x, size...))[1]
	const step = 1e-3
	for i := range x {
		at := func(by float32) float64 {
			moved := append([]float32{}, x...)
			moved[i] += by
			return float64(p.run(t, 1, tensors.FromFlatDataAndDimensions(moved, size...))[0][0])
		}
		if d := (at(step) - at(-step)) / (2 * step); math.Abs(d-float64(gradient[i])) > 0.01 {
			t.Errorf("the gradient of value %d is %g, the difference %g", i, gradient[i], d)
		}
	}
}

// wave gives each value another weight.
func wave(y *graph.Node) *graph.Node {
	return graph.Sin(graph.AddScalar(graph.IotaFull(y.Graph(), y.Shape()), 0.5))
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
