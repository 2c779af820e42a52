package pjrt_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/images"

	"gonbatch/distributed/affinity"
	"gonbatch/distributed/onednn"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/bounded"
	"gonbatch/internal/tier"
)

// openKernels opens the CPU with oneDNN's kernels.
func openKernels(t *testing.T) compute.Backend {
	t.Helper()
	library, err := onednn.Open([]string{ranktest.OneDNN(t)})
	if err != nil {
		t.Fatal(err)
	}
	_, backend := open(t)
	if err := pjrt.RegisterKernels("cpu", pjrt.Kernels{Convolution: library.Convolution(), Product: library.Product(), Columns: library.Columns(), Adam: library.Adam(), TrainedProduct: library.TrainedProduct()}); err != nil {
		t.Fatal(err)
	}
	pjrt.SetMinProduct(1)
	return backend
}

// limitThreads lets kernels compute with a random number of threads, which it returns.
func limitThreads(t *testing.T, r *rand.Rand) int {
	t.Helper()
	library, err := onednn.Open(nil) // It is open.
	if err != nil {
		t.Fatal(err)
	}
	library.LimitThreads(1 + r.IntN(8))
	return library.Threads()
}

type function = func(inputs []*graph.Node) []*graph.Node

// evaluate computes a function with or without kernels. It returns how many operations kernels
// computed.
func evaluate(t *testing.T, backend compute.Backend, kernels bool, f function, inputs []*tensors.Tensor) ([]*tensors.Tensor, int64) {
	t.Helper()
	replaced := pjrt.CountKernels(kernels)
	exec := graph.MustNewExec(backend, f)
	arguments := make([]any, len(inputs))
	for i, input := range inputs {
		arguments[i] = input
	}
	outs, err := exec.Call(arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return outs, replaced()
}

// sameWithKernels checks that kernels compute the given number of operations of a function, and
// that they give the same results as XLA, up to rounding.
func sameWithKernels(t *testing.T, backend compute.Backend, f function, want int64, inputs ...*tensors.Tensor) {
	t.Helper()
	plain, none := evaluate(t, backend, false, f, inputs)
	ours, replaced := evaluate(t, backend, true, f, inputs)
	if none != 0 || replaced != want {
		t.Errorf("kernels computed %d operations, and %d when they were off; want %d", replaced, none, want)
	}
	for i := range plain {
		a, b := flat(t, plain[i]), flat(t, ours[i])
		if plain[i].Shape().String() != ours[i].Shape().String() {
			t.Errorf("result %d has shape %s, want %s", i, ours[i].Shape(), plain[i].Shape())
			continue
		}
		largest, worst := 1.0, 0.0
		for j := range a {
			largest, worst = max(largest, math.Abs(a[j])), max(worst, math.Abs(a[j]-b[j]))
		}
		if !(worst <= 1e-5*largest) {
			t.Errorf("result %d of shape %s differs by %g of %g", i, plain[i].Shape(), worst, largest)
		}
	}
}

// flat returns the numbers of a tensor.
func flat(t *testing.T, x *tensors.Tensor) (all []float64) {
	t.Helper()
	x.MustConstFlatData(func(data any) {
		switch data := data.(type) {
		case []float32:
			for _, v := range data {
				all = append(all, float64(v))
			}
		case []float64:
			all = slices.Clone(data)
		default:
			t.Fatalf("a tensor of %T", data)
		}
	})
	return all
}

func noise(r *rand.Rand, dtype dtypes.DType, size ...int) *tensors.Tensor {
	n := 1
	for _, s := range size {
		n *= s
	}
	narrow, wide := make([]float32, n), make([]float64, n)
	for i := range n {
		narrow[i] = 2*r.Float32() - 1
		wide[i] = float64(narrow[i])
	}
	if dtype == dtypes.Float64 {
		return tensors.FromFlatDataAndDimensions(wide, size...)
	}
	return tensors.FromFlatDataAndDimensions(narrow, size...)
}

// convolutionCase is a convolution with random options.
type convolutionCase struct {
	dtype                             dtypes.DType
	batch, height, width, in, out     int
	kernel, stride, dilation, dilated [2]int
	padding                           [2][2]int
	groups, batchGroups               int
	channelsFirst, gradients          bool
}

func randomConvolution(r *rand.Rand) convolutionCase {
	pair := func(n int) [2]int { return [2]int{1 + r.IntN(n), 1 + r.IntN(n)} }
	c := convolutionCase{
		dtype: dtypes.Float32, batch: 1 + r.IntN(4), height: 7 + r.IntN(8), width: 7 + r.IntN(8), in: 1 + r.IntN(40), out: 1 + r.IntN(40),
		kernel: pair(4), stride: pair(1), dilation: pair(1), dilated: pair(1), groups: 1, batchGroups: 1,
	}
	switch r.IntN(3) {
	case 0:
		c.dilation = pair(2)
	case 1:
		c.stride = pair(3)
		fallthrough
	default: // GoMLX has gradients for these.
		c.gradients = true
		c.kernel = [2]int{1 + 2*r.IntN(3), 1 + 2*r.IntN(3)}
	}
	for axis, size := range c.kernel {
		c.padding[axis] = [2]int{r.IntN(size), r.IntN(size)}
	}
	return c
}

func (c convolutionCase) axes() images.ChannelsAxisConfig {
	if c.channelsFirst {
		return images.ChannelsFirst
	}
	return images.ChannelsLast
}

// convolve computes the convolution and, if it has them, its gradients.
func (c convolutionCase) convolve(inputs []*graph.Node) []*graph.Node {
	x, w := inputs[0], inputs[1]
	b := graph.Convolve(x, w).ChannelsAxis(c.axes()).PaddingPerDim(c.padding[:]).ChannelGroupCount(c.groups).BatchGroupCount(c.batchGroups)
	if c.dilated != [2]int{1, 1} {
		return []*graph.Node{b.InputDilationPerAxis(c.dilated[:]...).Done()}
	}
	if c.stride != [2]int{1, 1} {
		b.StridePerAxis(c.stride[:]...)
	}
	if c.dilation != [2]int{1, 1} {
		b.DilationPerAxis(c.dilation[:]...)
	}
	y := b.Done()
	if !c.gradients {
		return []*graph.Node{y}
	}
	weights := graph.Sin(graph.AddScalar(graph.IotaFull(x.Graph(), y.Shape()), 0.5))
	return append([]*graph.Node{y}, graph.Gradient(graph.ReduceAllSum(graph.Mul(y, weights)), x, w)...)
}

func (c convolutionCase) inputs(r *rand.Rand) []*tensors.Tensor {
	x, w := []int{c.batch, c.height, c.width, c.in}, []int{c.kernel[0], c.kernel[1], c.in / c.groups, c.out}
	if c.channelsFirst {
		x, w = []int{c.batch, c.in, c.height, c.width}, []int{c.out, c.in / c.groups, c.kernel[0], c.kernel[1]}
	}
	return []*tensors.Tensor{noise(r, c.dtype, x...), noise(r, c.dtype, w...)}
}

// TestConvolutionKernels: convolutions and both gradients by kernels equal XLA's, for random sizes
// and options. Those that kernels can't compute are left to XLA.
func TestConvolutionKernels(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 1, func(t *testing.T) {
		backend, r := openKernels(t), rand.New(rand.NewPCG(1, 2))
		most := 0
		check := func(c convolutionCase, want int64) {
			threads := limitThreads(t, r)
			most = max(most, threads)
			t.Logf("%d threads: %+v", threads, c)
			sameWithKernels(t, backend, c.convolve, want, c.inputs(r)...)
		}
		for i := range tier.Tries(60, 20) {
			c := randomConvolution(r)
			if i%3 == 0 {
				c.batch = 1 + r.IntN(24) // Threads divide it, evenly or not.
			}
			check(c, map[bool]int64{false: 1, true: 3}[c.gradients])
		}
		plain := convolutionCase{
			dtype: dtypes.Float32, batch: 2, height: 8, width: 7, in: 4, out: 6, kernel: [2]int{3, 1}, stride: [2]int{1, 1},
			dilation: [2]int{1, 1}, dilated: [2]int{1, 1}, groups: 1, batchGroups: 1, gradients: true,
		}
		check(plain, 3)
		other := func(change func(*convolutionCase)) convolutionCase { c := plain; change(&c); return c }
		check(other(func(c *convolutionCase) { c.dtype = dtypes.Float64 }), 0)
		check(other(func(c *convolutionCase) { c.groups, c.gradients = 2, false }), 0)
		check(other(func(c *convolutionCase) { c.groups = 2 }), 4) // GoMLX's gradients have two convolutions for each group.
		check(other(func(c *convolutionCase) { c.batchGroups, c.gradients = 2, false }), 0)
		check(other(func(c *convolutionCase) { c.channelsFirst = true }), 0)
		check(other(func(c *convolutionCase) { c.in, c.out = 512, 512 }), 0) // Too many weights.
		check(other(func(c *convolutionCase) { c.dilated = [2]int{2, 3}; c.padding = [2][2]int{{1, 2}, {0, 0}} }), 1)
		// It is not the gradient of a convolution with a padding of 0 or more.
		check(other(func(c *convolutionCase) { c.dilated = [2]int{2, 3}; c.padding = [2][2]int{{4, 4}, {5, 5}} }), 0)
		if allowed, err := affinity.Allowed(); err != nil || most == 1 && len(allowed) > 1 {
			t.Errorf("no kernel had several threads, of %d CPUs (%v)", len(allowed), err)
		}
	})
}

// productCase is a product of two matrices with random sizes, each transposed or not, or of pairs
// of matrices that one or two dimensions count. Some have rows so far apart that a kernel copies b.
type productCase struct {
	a, b       []int
	contracted [2]int
	pairs      []int // The dimensions that count pairs.
}

func randomProduct(r *rand.Rand) productCase {
	size := func() int { return 1 + r.IntN(70) }
	m, n, k := size(), size(), size()
	if r.IntN(3) == 0 {
		n, k = 512*(1+r.IntN(3)), 1+r.IntN(1200)
	}
	c := productCase{a: []int{m, k}, b: []int{k, n}, contracted: [2]int{1, 0}}
	for i, sizes := range [][]int{c.a, c.b} {
		if r.IntN(2) == 0 {
			slices.Reverse(sizes)
			c.contracted[i] = 1 - c.contracted[i]
		}
	}
	for range r.IntN(3) {
		pairs := []int{1 + r.IntN(4)}
		c.a, c.b, c.pairs = append(pairs[:1:1], c.a...), append(pairs[:1:1], c.b...), append(c.pairs, len(c.pairs))
		c.contracted = [2]int{c.contracted[0] + 1, c.contracted[1] + 1}
	}
	return c
}

// multiply computes the product, its transposition and its gradients.
func (c productCase) multiply(inputs []*graph.Node) []*graph.Node {
	y := graph.Dot(inputs[0], inputs[1]).General(c.contracted[:1], c.pairs, c.contracted[1:], c.pairs)
	last := y.Rank() - 1
	loss := graph.ReduceAllSum(graph.Mul(y, graph.Sin(graph.IotaFull(y.Graph(), y.Shape()))))
	return append([]*graph.Node{y, graph.Transpose(y, last-1, last)}, graph.Gradient(loss, inputs...)...)
}

// TestProductKernels: products of matrices by kernels equal XLA's, for random sizes, transposed or
// not, and so do their gradients.
func TestProductKernels(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 1, func(t *testing.T) {
		backend, r := openKernels(t), rand.New(rand.NewPCG(3, 4))
		for range tier.Tries(30, 10) {
			c := randomProduct(r)
			t.Logf("%d threads: %+v", limitThreads(t, r), c)
			sameWithKernels(t, backend, c.multiply, 3, noise(r, dtypes.Float32, c.a...), noise(r, dtypes.Float32, c.b...))
			sameWithKernels(t, backend, c.multiply, 0, noise(r, dtypes.Float64, c.a...), noise(r, dtypes.Float64, c.b...))
		}
	})
}

// TestKernelsInThreads: several programs with kernels run at once.
func TestKernelsInThreads(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 1, func(t *testing.T) {
		backend := openKernels(t)
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				r := rand.New(rand.NewPCG(5, uint64(i)))
				c := randomConvolution(r)
				c.batch = 8 * (i%2 + 1)
				inputs := c.inputs(r)
				exec := graph.MustNewExec(backend, c.convolve)
				first := exec.MustCall(inputs[0], inputs[1])
				for range 20 {
					for j, out := range exec.MustCall(inputs[0], inputs[1]) {
						if !slices.Equal(flat(t, out), flat(t, first[j])) {
							t.Errorf("%+v: result %d changed", c, j)
						}
					}
				}
			})
		}
		group.Wait()
	})
}

// TestOlderProcessor: the tests of kernels pass if XLA and oneDNN use AVX2 only: their limits
// follow from what they compute, not from how a processor rounds it. Package onednn compares the
// variants of our own kernels.
func TestOlderProcessor(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^(TestConvolutionKernels|TestProductKernels|TestTrainedProduct|TestTrainedByItself|TestParts)$", "-test.v", fmt.Sprint("-test.short=", testing.Short()))
	cmd.Env = append(os.Environ(), "ONEDNN_MAX_CPU_ISA=AVX2", "XLA_FLAGS="+os.Getenv("XLA_FLAGS")+" --xla_cpu_max_isa=AVX2")
	out, err := bounded.CombinedOutput(cmd)
	ran := strings.Count(string(out), "\n--- PASS: ") + strings.Count(string(out), "\n--- SKIP: ")
	if err != nil || ran != 5 {
		t.Errorf("%d tests ran, %v\n%s", ran, err, out)
	}
}
