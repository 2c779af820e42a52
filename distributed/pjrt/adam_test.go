package pjrt_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
)

// adam builds an update as GoMLX's optimizer.Adam does, from a weight, its moments, a gradient and
// a number of steps. With a decay it is AdamW.
func adam(inputs []*graph.Node, decay float64, also func(newWeight, newM, newV *graph.Node) []*graph.Node) []*graph.Node {
	return adamOfTwo(inputs, inputs[3], decay, 1e-7, also)
}

// adamOfTwo is adam with another gradient for the second moment, and with an epsilon.
func adamOfTwo(inputs []*graph.Node, second *graph.Node, decay, epsilon float64, also func(newWeight, newM, newV *graph.Node) []*graph.Node) []*graph.Node {
	w, m, v, g, steps := inputs[0], inputs[1], inputs[2], inputs[3], inputs[4]
	constant := func(x float64) *graph.Node { return graph.Scalar(w.Graph(), w.DType(), x) }
	beta1, beta2, rate := constant(0.9), constant(0.999), graph.DivScalar(constant(0.5), 7)
	debias := func(beta *graph.Node) *graph.Node { return graph.Reciprocal(graph.OneMinus(graph.Pow(beta, steps))) }
	m = graph.Add(graph.Mul(beta1, m), graph.Mul(graph.OneMinus(beta1), g))
	v = graph.Add(graph.Mul(beta2, v), graph.Mul(graph.OneMinus(beta2), graph.Square(second)))
	denominator := graph.Add(graph.Sqrt(graph.Mul(v, debias(beta2))), constant(epsilon))
	step := graph.Div(graph.Mul(rate, graph.Mul(m, debias(beta1))), denominator)
	if decay > 0 {
		step = graph.Add(step, graph.Mul(rate, graph.MulScalar(w, decay)))
	}
	w = graph.Sub(w, step)
	return append([]*graph.Node{w, m, v}, also(w, m, v)...)
}

// secondMoment makes a second moment of the numbers of a tensor, and returns it: their squares, and
// a little more. An update divides by its root, so with one near 0 a rounding error of the
// gradient, which differs from processor to processor, would decide the result.
func secondMoment(x *tensors.Tensor) *tensors.Tensor {
	const more = 0.01
	x.MustMutableFlatData(func(data any) {
		switch data := data.(type) {
		case []float32:
			for i := range data {
				data[i] = data[i]*data[i] + more
			}
		case []float64:
			for i := range data {
				data[i] = data[i]*data[i] + more
			}
		}
	})
	return x
}

// TestAdamKernel: updates by the kernel equal XLA's, for random sizes and numbers of threads, with
// and without decay, also if the program uses the new values for something else. Other types, and
// what is only like Adam, are left to XLA.
func TestAdamKernel(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 1, func(t *testing.T) {
		backend, r := openKernels(t), rand.New(rand.NewPCG(7, 8))
		pjrt.SetMinUpdate(1)
		nothing := func(_, _, _ *graph.Node) []*graph.Node { return nil }
		norms := func(w, m, v *graph.Node) []*graph.Node {
			return []*graph.Node{graph.L2Norm(w), graph.ReduceAllSum(m), graph.Add(v, graph.Exp(w))}
		}
		inputs := func(dtype dtypes.DType, size ...int) []*tensors.Tensor {
			all := make([]*tensors.Tensor, 5)
			for i := range all[:4] {
				all[i] = noise(r, dtype, size...)
			}
			all[2] = secondMoment(all[2])
			all[4] = tensors.FromScalarAndDimensions(float32(1+r.IntN(20)), 1)
			if dtype == dtypes.Float64 {
				all[4] = tensors.FromScalarAndDimensions(float64(1+r.IntN(20)), 1)
			}
			return all
		}
		scalar := func(f func(inputs []*graph.Node) []*graph.Node) function {
			return func(inputs []*graph.Node) []*graph.Node {
				inputs[4] = graph.Reshape(inputs[4])
				return f(inputs)
			}
		}
		for i := range tier.Tries(24, 8) {
			size := []int{1 + r.IntN(1000), 1 + r.IntN(40)}
			if i%3 == 0 {
				size = []int{1 + r.IntN(100_000)}
			}
			also := nothing
			if i%2 == 0 {
				also = norms
			}
			decay := float64(i%4) * 0.1
			t.Logf("%d threads: %v, decay %g", limitThreads(t, r), size, decay)
			f := scalar(func(inputs []*graph.Node) []*graph.Node { return adam(inputs, decay, also) })
			sameWithKernels(t, backend, f, 1, inputs(dtypes.Float32, size...)...)
			sameWithKernels(t, backend, f, 0, inputs(dtypes.Float64, size...)...)
		}
		for range 6 { // The kernel scales the gradient, which is a part of something larger.
			rows, columns := 1+r.IntN(100), 1+r.IntN(100)
			scaled := scalar(func(inputs []*graph.Node) []*graph.Node {
				g := graph.Concatenate([]*graph.Node{graph.Reshape(inputs[3], -1), graph.Reshape(inputs[0], -1)}, 0)
				g = graph.Slice(graph.DivScalar(g, 3), graph.AxisRange(0, rows*columns))
				inputs[3] = graph.MulScalar(graph.Reshape(graph.Mul(graph.ReduceAllMax(inputs[0]), g), rows, columns), 0.7)
				return adam(inputs, 0.01, norms)
			})
			sameWithKernels(t, backend, scaled, 1, inputs(dtypes.Float32, rows, columns)...)
		}
		large := scalar(func(inputs []*graph.Node) []*graph.Node { return adamOfTwo(inputs, inputs[3], 0, 0.1, nothing) })
		sameWithKernels(t, backend, large, 1, inputs(dtypes.Float32, 1000)...)
		zeros := inputs(dtypes.Float32, 100)
		for i := range 3 { // The moments and the gradient: without epsilon, the step would be 0/0.
			zeros[1+i] = tensors.FromScalarAndDimensions(float32(0), 100)
		}
		sameWithKernels(t, backend, scalar(func(inputs []*graph.Node) []*graph.Node { return adam(inputs, 0, nothing) }), 1, zeros...)
		other := scalar(func(inputs []*graph.Node) []*graph.Node { // The step is added.
			w := inputs[0]
			all := adam(inputs, 0, nothing)
			all[0] = graph.Add(w, graph.Sub(w, all[0]))
			return all
		})
		sameWithKernels(t, backend, other, 1, inputs(dtypes.Float32, 100)...) // Only inside.
		mixed := scalar(func(inputs []*graph.Node) []*graph.Node {
			return adamOfTwo(inputs, graph.Sin(inputs[3]), 0, 1e-7, nothing)
		})
		sameWithKernels(t, backend, mixed, 0, inputs(dtypes.Float32, 100)...)
	})
}

// TestAdamOfInfiniteWeights: without a decay, infinite weights stay infinite.
func TestAdamOfInfiniteWeights(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 1, func(t *testing.T) {
		backend := openKernels(t)
		pjrt.SetMinUpdate(1)
		x := func(value float32) *tensors.Tensor { return tensors.FromScalarAndDimensions(value, 20) }
		inputs := []*tensors.Tensor{x(float32(math.Inf(-1))), x(1), x(1), x(1), tensors.FromScalarAndDimensions(float32(1), 1)}
		out, replaced := evaluate(t, backend, true, func(inputs []*graph.Node) []*graph.Node {
			inputs[4] = graph.Reshape(inputs[4])
			return adam(inputs, 0, func(_, _, _ *graph.Node) []*graph.Node { return nil })
		}, inputs)
		if got := flat(t, out[0]); replaced != 1 || !math.IsInf(got[0], -1) || !math.IsInf(got[19], -1) {
			t.Errorf("%d kernels: %v", replaced, got)
		}
	})
}

// sums adds up x over its first dimensions, of which there are as many as that.
func sums(dimensions int) function {
	return func(inputs []*graph.Node) []*graph.Node {
		axes := make([]int, dimensions)
		for i := range axes {
			axes[i] = i
		}
		return []*graph.Node{graph.ReduceSum(inputs[0], axes...), graph.ReduceMax(inputs[0], axes...), graph.ReduceSum(graph.Sin(inputs[0]), -1)}
	}
}

// TestColumnsKernel: sums over rows by the kernel equal XLA's, for random sizes, and are as exact.
func TestColumnsKernel(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 1, func(t *testing.T) {
		backend, r := openKernels(t), rand.New(rand.NewPCG(9, 10))
		pjrt.SetMinUpdate(1)
		for range tier.Tries(24, 8) {
			size := [][]int{{2 + r.IntN(2000), 1 + r.IntN(300)}, {1 + r.IntN(9), 2 + r.IntN(200), 1 + r.IntN(3000)}, {2 + r.IntN(3), 1 + r.IntN(30), 1 + r.IntN(30), 1 + r.IntN(70)}}[r.IntN(3)]
			t.Logf("%d threads: %v", limitThreads(t, r), size)
			sameWithKernels(t, backend, sums(len(size)-1), 1, noise(r, dtypes.Float32, size...))
			sameWithKernels(t, backend, sums(len(size)-1), 0, noise(r, dtypes.Float64, size...))
		}
		sameWithKernels(t, backend, sums(1), 0, noise(r, dtypes.Float32, 1, 50))  // One row.
		sameWithKernels(t, backend, sums(2), 0, noise(r, dtypes.Float32, 20, 50)) // All.
		checkExactSums(t, func(x []float32) []float64 {
			out, replaced := evaluate(t, backend, true, sums(1), []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, len(x)/4, 4)})
			if replaced != 1 {
				t.Fatalf("%d kernels", replaced)
			}
			return flat(t, out[0])
		})
	})
}

// checkExactSums adds up a million times 0.1 in four columns: added one after the other, the
// rounding errors of float32 would make it 100,958.
func checkExactSums(t *testing.T, columns func(x []float32) []float64) {
	t.Helper()
	x := make([]float32, 4_000_000)
	for i := range x {
		x[i] = 0.1
	}
	for _, sum := range columns(x) {
		if !(sum > 99_980 && sum < 100_020) {
			t.Errorf("a million times 0.1 is %.1f", sum)
		}
	}
}
