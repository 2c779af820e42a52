package pjrt_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
)

// TestParts: the update of a part of a weight, in the weight's memory, equals XLA's, for random
// sizes, gradients and uses of the weight before and after it.
func TestParts(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 1, func(t *testing.T) {
		backend, r := openKernels(t), rand.New(rand.NewPCG(21, 22))
		pjrt.SetMinUpdate(1)
		pjrt.SetMinTrained(1)
		updated := map[bool]int{}
		cases := tier.Tries(40, 12)
		for i := range cases {
			c := randomPart(r)
			t.Logf("case %d, %d threads: %+v", i, limitThreads(t, r), c)
			kernels, inPlace := int64(1), c.isInPlace()
			if c.product {
				kernels++
			}
			if c.multiplies {
				kernels++
			}
			sameWithKernels(t, backend, c.update, kernels, c.inputs(r)...)
			if got := c.isRewritten(t, backend, r); got != inPlace {
				t.Errorf("case %d, %+v: updated in place: %v, want %v", i, c, got, inPlace)
			}
			updated[inPlace]++
		}
		if min(updated[true], updated[false]) < cases/5 {
			t.Errorf("%d cases in place and %d others: the test should have more", updated[true], updated[false])
		}
	})
}

// partCase is an update of m x n elements of a weight of `rows` rows.
type partCase struct {
	rows, m, n, k int
	begin         int // The first row of the part.
	product       bool
	decay         float64
	multiplies    bool // A product uses the weight too.
	readsPart     bool // Something else reads the old part,
	readsNew      bool // the new one before it is back in the weight,
	readsWhole    bool // or the weight as it was.
	elsewhere     bool // The new part goes elsewhere,
	reshapes      bool // or through a reshape.
	outside       int  // So many elements of the part are before the weight (below 0) or after it.
}

func randomPart(r *rand.Rand) partCase {
	c := partCase{m: 1 + r.IntN(60), n: 1 + r.IntN(300), k: 1 + r.IntN(130), product: r.IntN(2) == 0, multiplies: r.IntN(2) == 0}
	c.rows = c.m + r.IntN(3*c.m)
	c.begin = r.IntN(c.rows - c.m + 1)
	if r.IntN(2) == 0 {
		c.decay = 0.1
	}
	for _, rare := range []*bool{&c.readsPart, &c.readsNew, &c.readsWhole, &c.elsewhere, &c.reshapes} {
		*rare = r.IntN(6) == 0
	}
	switch r.IntN(6) {
	case 0:
		c.begin, c.outside = 0, -1-r.IntN(50)
	case 1:
		c.begin, c.outside = c.rows-c.m, 1+r.IntN(50)
	}
	return c
}

func (c partCase) isInPlace() bool { return !c.readsNew && !c.elsewhere && !c.reshapes }

// inputs are the weight, the moments of the part, two factors of its gradient, the number of the
// first element, one that is elsewhere, a matrix to multiply, a number of steps, and another
// gradient.
func (c partCase) inputs(r *rand.Rand) []*tensors.Tensor {
	size := c.m * c.n
	return []*tensors.Tensor{
		noise(r, dtypes.Float32, c.rows, c.n), noise(r, dtypes.Float32, size), secondMoment(noise(r, dtypes.Float32, size)),
		noise(r, dtypes.Float32, c.k, c.m), noise(r, dtypes.Float32, c.k, c.n),
		tensors.FromScalar(int64(c.begin*c.n + c.outside)), tensors.FromScalar(int64(r.IntN(c.rows*c.n - size + 1))),
		noise(r, dtypes.Float32, 4, c.rows), tensors.FromScalarAndDimensions(float32(1+r.IntN(20)), 1),
		noise(r, dtypes.Float32, size),
	}
}

func (c partCase) update(in []*graph.Node) []*graph.Node {
	size, whole := c.m*c.n, graph.Reshape(in[0], c.rows*c.n)
	var also []*graph.Node
	if c.multiplies {
		also = append(also, graph.MatMul(in[7], in[0]))
	}
	part := graph.DynamicSlice(whole, []*graph.Node{in[5]}, []int{size})
	gradient := in[9]
	if c.product {
		gradient = graph.Reshape(graph.DotGeneral(in[3], []int{0}, nil, in[4], []int{0}, nil), size)
	}
	return adam([]*graph.Node{part, in[1], in[2], graph.MulScalar(gradient, 0.5), graph.Reshape(in[8])}, c.decay, func(updated, _, _ *graph.Node) []*graph.Node {
		to := in[5]
		if c.elsewhere {
			to = in[6]
		}
		put := updated
		if c.reshapes {
			put = graph.Reshape(graph.Reshape(updated, c.m, c.n), size)
		}
		also = append(also, graph.DynamicUpdateSlice(whole, put, []*graph.Node{to}))
		if c.readsPart {
			also = append(also, graph.ReduceAllMax(part))
		}
		if c.readsNew {
			also = append(also, graph.ReduceAllMax(updated))
		}
		if c.readsWhole {
			also = append(also, graph.ReduceAllMax(whole))
		}
		return also
	})[1:] // The new part is in the whole.
}

// isRewritten reports whether the program updates the weight in its memory.
func (c partCase) isRewritten(t *testing.T, backend compute.Backend, r *rand.Rand) bool {
	t.Helper()
	var program string
	defer pjrt.SetShare(func(module string) (string, int) {
		program = module
		return module, 0
	})()
	evaluate(t, backend, true, c.update, c.inputs(r))
	written, _ := pjrt.WithKernels(program)
	return strings.Contains(written, `"gonbatch_adam_part"`) || strings.Contains(written, `"gonbatch_trained_product_part"`)
}
