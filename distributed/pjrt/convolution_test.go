package pjrt_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	xlapjrt "github.com/gomlx/go-xla/pjrt"

	"gonbatch/distributed/onednn"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
)

// layout says at which axes of its operands and its result a convolution has what.
type layout struct {
	text    string
	images  [4]int // Batch, height, width, channels.
	kernel  [4]int // Height, width, channels in, channels out.
	results [4]int // As images.
}

var layouts = []layout{
	{"[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", [4]int{0, 1, 2, 3}, [4]int{0, 1, 2, 3}, [4]int{0, 1, 2, 3}},
	{"[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]", [4]int{0, 1, 2, 3}, [4]int{0, 1, 3, 2}, [4]int{0, 1, 2, 3}},
	{"[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", [4]int{3, 1, 2, 0}, [4]int{1, 2, 0, 3}, [4]int{2, 0, 1, 3}},
}

// tensor is an array whose axes have another order in memory.
type tensor struct {
	size   [4]int // In memory.
	stride [4]int // Of the axes that at names.
}

func tensorOf(at, sizes [4]int) (t tensor) {
	for i, axis := range at {
		t.size[axis] = sizes[i]
	}
	for i, axis := range at {
		t.stride[i] = 1
		for _, inner := range t.size[axis+1:] {
			t.stride[i] *= inner
		}
	}
	return t
}

func (t tensor) index(i, j, k, l int) int {
	return i*t.stride[0] + j*t.stride[1] + k*t.stride[2] + l*t.stride[3]
}

func (t tensor) len() int { return t.size[0] * t.size[1] * t.size[2] * t.size[3] }

func (t tensor) String() string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(t.size), "[]"), " ", "x")
}

// stableConvolution is a convolution as StableHLO defines it.
type stableConvolution struct {
	layout
	batch, in, out                      int
	image, kernel, result               [2]int
	stride, imageDilation, kernDilation [2]int
	padding                             [2][2]int
	images, weights, results            tensor
}

func randomStable(r *rand.Rand) stableConvolution {
	for {
		n := func(most int) int { return 1 + r.IntN(most) }
		pair := func(most int) [2]int { return [2]int{n(most), n(most)} }
		channels := []int{n(40), 1, 3, 8, 16, 17, 32, 64, 96}
		c := stableConvolution{
			layout: layouts[r.IntN(len(layouts))], batch: n(5), in: channels[r.IntN(len(channels))], out: channels[r.IntN(len(channels))],
			image: pair(14), kernel: pair(6), stride: pair(1), imageDilation: pair(1), kernDilation: pair(1),
		}
		if r.IntN(4) == 0 {
			c.kernel = c.image // As in gradients.
		}
		switch r.IntN(4) {
		case 0:
			c.stride = pair(4)
		case 1:
			c.imageDilation = pair(4)
		}
		if r.IntN(2) == 0 {
			c.kernDilation = pair(4)
		}
		for axis := range c.padding {
			c.padding[axis] = [2]int{r.IntN(12) - r.IntN(4), r.IntN(12) - r.IntN(4)}
			if r.IntN(2) == 0 {
				c.padding[axis] = [2]int{r.IntN(c.kernel[axis]), r.IntN(c.kernel[axis])}
			}
		}
		if r.IntN(3) == 0 {
			c.forWinograd(r)
		}
		if c.setResult() {
			return c
		}
	}
}

// forWinograd gives it sizes for which Winograd's algorithm pays.
func (c *stableConvolution) forWinograd(r *rand.Rand) {
	one, channels := [2]int{1, 1}, func() int { return 16 * (2 + r.IntN(3)) }
	c.in, c.out, c.kernel, c.image = channels(), channels(), [2]int{3, 3}, [2]int{6 + r.IntN(9), 6 + r.IntN(9)}
	c.stride, c.imageDilation, c.kernDilation = one, one, one
	for axis := range c.padding {
		c.padding[axis] = [2]int{r.IntN(3), r.IntN(3)}
	}
	if c.layout == layouts[2] { // As gradients of weights, [3, 3, batch, out].
		c.batch, c.in = channels(), 4+r.IntN(4)
		for axis, size := range c.image {
			c.kernel[axis] = size + c.padding[axis][0] + c.padding[axis][1] - 2
		}
	}
}

// setResult computes the size of the result. It reports false if it is empty.
func (c *stableConvolution) setResult() bool {
	for axis := range c.result {
		padded := (c.image[axis]-1)*c.imageDilation[axis] + 1 + c.padding[axis][0] + c.padding[axis][1]
		rest := padded - (c.kernel[axis]-1)*c.kernDilation[axis] - 1
		if rest < 0 {
			return false
		}
		c.result[axis] = rest/c.stride[axis] + 1
	}
	c.images = tensorOf(c.layout.images, [4]int{c.batch, c.image[0], c.image[1], c.in})
	c.weights = tensorOf(c.layout.kernel, [4]int{c.kernel[0], c.kernel[1], c.in, c.out})
	c.results = tensorOf(c.layout.results, [4]int{c.batch, c.result[0], c.result[1], c.out})
	return true
}

func (c stableConvolution) program(attributes string) string {
	p := c.padding
	return fmt.Sprintf(`module @m%s {
  func.func @main(%%a: tensor<%[2]sxf32>, %%b: tensor<%[3]sxf32>) -> tensor<%[4]sxf32> {
    %%0 = "stablehlo.convolution"(%%a, %%b) {
      window_strides = array<i64: %[5]d, %[6]d>,
      padding = dense<[[%[7]d, %[8]d], [%[9]d, %[10]d]]> : tensor<2x2xi64>,
      lhs_dilation = array<i64: %[11]d, %[12]d>,
      rhs_dilation = array<i64: %[13]d, %[14]d>,
      window_reversal = array<i1: false, false>,
      dimension_numbers = #stablehlo.conv<%[15]s>,
      feature_group_count = 1 : i64,
      batch_group_count = 1 : i64
    } : (tensor<%[2]sxf32>, tensor<%[3]sxf32>) -> tensor<%[4]sxf32>
    "stablehlo.return"(%%0) : (tensor<%[4]sxf32>) -> ()
  }
}
`, attributes, c.images, c.weights, c.results, c.stride[0], c.stride[1], p[0][0], p[0][1], p[1][0], p[1][1],
		c.imageDilation[0], c.imageDilation[1], c.kernDilation[0], c.kernDilation[1], c.text)
}

// source returns which pixel of an axis the kernel's pixel k sees for a pixel of the result. It
// reports false if it sees a zero.
func (c stableConvolution) source(axis, result, k int) (pixel int, ok bool) {
	at := result*c.stride[axis] + k*c.kernDilation[axis] - c.padding[axis][0]
	pixel = at / c.imageDilation[axis]
	return pixel, at >= 0 && at%c.imageDilation[axis] == 0 && pixel < c.image[axis]
}

// compute is the model: a plain loop.
func (c stableConvolution) compute(images, weights []float32) []float64 {
	results := make([]float64, c.results.len())
	for i := range c.result[0] * c.result[1] * c.kernel[0] * c.kernel[1] {
		y, x := i/c.result[1]%c.result[0], i%c.result[1]
		k := i / (c.result[0] * c.result[1])
		row, rowOK := c.source(0, y, k/c.kernel[1])
		column, columnOK := c.source(1, x, k%c.kernel[1])
		if !rowOK || !columnOK {
			continue
		}
		for j := range c.batch * c.in * c.out {
			n, in, out := j/(c.in*c.out), j/c.out%c.in, j%c.out
			image, weight := images[c.images.index(n, row, column, in)], weights[c.weights.index(k/c.kernel[1], k%c.kernel[1], in, out)]
			results[c.results.index(n, y, x, out)] += float64(image) * float64(weight)
		}
	}
	return results
}

// run computes it by XLA.
func (c stableConvolution) run(client *xlapjrt.Client, images, weights []float32) ([]float32, error) {
	exec, err := client.Compile().WithStableHLO([]byte(c.program(""))).Done()
	if err != nil {
		return nil, err
	}
	a, aErr := client.BufferFromHost().FromFlatDataWithDimensions(images, c.images.size[:]).Done()
	b, bErr := client.BufferFromHost().FromFlatDataWithDimensions(weights, c.weights.size[:]).Done()
	if err := errors.Join(aErr, bErr); err != nil {
		return nil, err
	}
	outs, err := exec.Execute(a, b).Done()
	if err != nil {
		return nil, err
	}
	results, _, err := xlapjrt.BufferToArray[float32](outs[0])
	return results, errors.Join(err, a.Destroy(), b.Destroy(), outs[0].Destroy(), exec.Destroy())
}

func numbers(r *rand.Rand, n int) []float32 {
	all := make([]float32, n)
	for i := range all {
		all[i] = 2*r.Float32() - 1
	}
	return all
}

// TestConvolutionsAgainstLoop: convolutions that a kernel computes, with any sizes, paddings (wider
// than the kernel too, or negative), strides and dilations, equal a plain loop, even where OpenMP
// gives the library fewer threads. In a program for several devices there are none.
func TestConvolutionsAgainstLoop(t *testing.T) {
	convolutionsAgainstLoop(t)
	if ranktest.InRank() {
		return
	}
	for _, env := range []string{"OMP_THREAD_LIMIT=1", "OMP_DYNAMIC=true"} {
		if out, err := ranktest.Start(t, ranktest.Torchrun, 1, []string{env}); err != nil {
			t.Errorf("%s: %v\n%s", env, err, out)
		}
	}
}

func convolutionsAgainstLoop(t *testing.T) {
	t.Helper()
	library, err := onednn.Open([]string{ranktest.OneDNN(t)})
	if err != nil {
		t.Fatal(err)
	}
	client := cpuClient(t)
	if err := pjrt.RegisterKernels("cpu", pjrt.Kernels{Convolution: library.Convolution(), Product: library.Product()}); err != nil {
		t.Fatal(err)
	}
	r, computed := rand.New(rand.NewPCG(1, 2)), map[string]int{}
	for range tier.Tries(80, 30) {
		c := randomStable(r)
		if _, replaced := pjrt.WithKernels(c.program("")); replaced == 0 {
			continue // XLA crashes on some of them.
		}
		computed[c.text]++
		if _, replaced := pjrt.WithKernels(c.program(" attributes {stablehlo.num_replicas = 1,  stablehlo.num_partitions = 2}")); replaced != 0 {
			t.Errorf("%+v: a program for 2 devices has kernels", c)
		}
		images, weights := numbers(r, c.images.len()), numbers(r, c.weights.len())
		got, err := c.run(client, images, weights)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		largest, worst := 1.0, 0.0
		for i, want := range c.compute(images, weights) {
			largest, worst = max(largest, math.Abs(want)), max(worst, math.Abs(float64(got[i])-want))
		}
		if !(worst <= 1e-5*largest) {
			t.Errorf("%+v: it differs by %g of %g", c, worst, largest)
		}
	}
	if len(computed) != len(layouts) {
		t.Errorf("kernels computed only %v", computed)
	}
}
