package pjrt_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
)

// TestTrainedProduct: an update whose gradient is a product, of matrices in any order in memory,
// equals XLA's, for random sizes, numbers of threads, factors and decays. One call computes both if
// nothing else reads the gradient.
func TestTrainedProduct(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 1, func(t *testing.T) {
		backend, r := openKernels(t), rand.New(rand.NewPCG(11, 12))
		pjrt.SetMinUpdate(1)
		pjrt.SetMinTrained(1)
		for i := range tier.Tries(40, 14) {
			c := randomTrained(r)
			t.Logf("case %d, %d threads: %+v", i, limitThreads(t, r), c)
			pjrt.StartTrace(1000)
			sameWithKernels(t, backend, c.update, 2, c.inputs(r)...)
			operations, _ := pjrt.StopTrace()
			together := slices.ContainsFunc(operations, func(o pjrt.Operation) bool {
				return o.Kind == pjrt.TrainedProduct && strings.Contains(o.Name, " by ") && strings.Contains(o.Name, "Adam")
			})
			if want := !c.read && c.k <= 128; together != want {
				t.Errorf("case %d, %+v: one call computes the product and the update: %v, want %v", i, c, together, want)
			}
		}
	})
}

// TestTrainedByItself: a weight may also be a factor of its own gradient, or of another weight's.
func TestTrainedByItself(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 1, func(t *testing.T) {
		backend, r := openKernels(t), rand.New(rand.NewPCG(13, 14))
		pjrt.SetMinUpdate(1)
		pjrt.SetMinTrained(1)
		const n = 100
		both := func(in []*graph.Node) []*graph.Node {
			steps, none := graph.Reshape(in[6]), func(_, _, _ *graph.Node) []*graph.Node { return nil }
			first := graph.DotGeneral(in[0], []int{1}, nil, in[3], []int{0}, nil)
			second := graph.DotGeneral(in[3], []int{0}, nil, in[3], []int{1}, nil)
			updated := adam([]*graph.Node{in[0], in[1], in[2], first, steps}, 0, none)
			return append(updated, adam([]*graph.Node{in[3], in[4], in[5], second, steps}, 0.1, none)...)
		}
		var inputs []*tensors.Tensor
		for range 2 {
			c := trainedCase{m: n, n: n, k: n}
			inputs = append(inputs, c.inputs(r)[:3]...)
		}
		sameWithKernels(t, backend, both, 4, append(inputs, tensors.FromScalarAndDimensions(float32(3), 1))...)
	})
}

// trainedCase is an update by a gradient of m x n elements.
type trainedCase struct {
	m, n, k                  int
	transposedA, transposedB bool
	factor, decay            float64
	read                     bool // Something else reads the gradient.
}

func randomTrained(r *rand.Rand) trainedCase {
	size := func() int { return 1 + r.IntN([]int{8, 100, 3000}[r.IntN(3)]) }
	c := trainedCase{m: size(), n: size(), k: 1 + r.IntN(130), factor: 1, read: r.IntN(5) == 0}
	if c.m*c.n > 1<<19 { // The test would take long.
		c.m = 1 + c.m%100
	}
	c.transposedA, c.transposedB = r.IntN(2) == 0, r.IntN(2) == 0
	if r.IntN(2) == 0 {
		c.factor = 0.25
	}
	if r.IntN(2) == 0 {
		c.decay = 0.1
	}
	return c
}

// inputs are the weights, their moments, a, b and a number of steps.
func (c trainedCase) inputs(r *rand.Rand) []*tensors.Tensor {
	matrix := func(rows, columns int, transposed bool) *tensors.Tensor {
		if transposed {
			rows, columns = columns, rows
		}
		return noise(r, dtypes.Float32, rows, columns)
	}
	return []*tensors.Tensor{
		noise(r, dtypes.Float32, c.m, c.n), noise(r, dtypes.Float32, c.m, c.n), secondMoment(noise(r, dtypes.Float32, c.m, c.n)),
		matrix(c.m, c.k, c.transposedA), matrix(c.k, c.n, c.transposedB), tensors.FromScalarAndDimensions(float32(1+r.IntN(20)), 1),
	}
}

func (c trainedCase) update(in []*graph.Node) []*graph.Node {
	of := func(transposed bool, axis int) []int {
		if transposed {
			axis = 1 - axis
		}
		return []int{axis}
	}
	gradient := graph.DotGeneral(in[3], of(c.transposedA, 1), nil, in[4], of(c.transposedB, 0), nil)
	scaled := gradient
	if c.factor != 1 {
		scaled = graph.MulScalar(gradient, c.factor)
	}
	return adam([]*graph.Node{in[0], in[1], in[2], scaled, graph.Reshape(in[5])}, c.decay, func(_, _, _ *graph.Node) []*graph.Node {
		if c.read {
			return []*graph.Node{graph.ReduceAllMax(gradient)}
		}
		return nil
	})
}

// TestTrainedMemory: the step of a deep network has no gradient of weights in memory.
func TestTrainedMemory(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 1, func(t *testing.T) {
		backend := openKernels(t)
		pjrt.SetMinTrained(1)
		const width = 512
		step := stepOf(trainDeep(t, backend, 6, width, 4))
		if all, _ := pjrt.WithKernels(step); strings.Count(all, `"gonbatch_trained_product"`) != 6 {
			t.Errorf("%d updates by products, want one for each of 6 layers", strings.Count(all, `"gonbatch_trained_product"`))
		}
		if got, weights := temporaryBytes(t, keepIn(t, t.TempDir()), step), int64(4*width*width); got > weights/2 {
			t.Errorf("%d bytes of temporary memory; the gradient of a layer has %d", got, weights)
		}
	})
}
