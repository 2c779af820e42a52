package cnn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/models/cnn"
	"gonbatch/models/modelstest"
)

type layer = func(scope *model.Scope, x *graph.Node) *graph.Node

// outcome is what a layer computes from an input: its result, the gradients of the input and of
// each variable, and the values of the variables after the step.
type outcome map[string]numbers

type numbers struct {
	shape  string
	values []float32
}

func numbersOf(t *testing.T, x *tensors.Tensor) numbers {
	return numbers{x.Shape().String(), tensors.MustCopyFlatData[float32](x)}
}

// trained is a layer with its store of variables.
type trained struct {
	store *model.Store
	exec  *model.Exec
	names []string
}

// newTrained returns a layer that runs forwards and backwards. Its loss gives each result a
// different weight.
func newTrained(t testing.TB, l layer, training bool) *trained {
	t.Helper()
	tr := &trained{store: model.NewStore()}
	tr.store.SetParam("/"+model.ParamInitialSeed, int64(7))
	var err error
	tr.exec, err = model.NewExec(modelstest.Backend(t), tr.store, func(scope *model.Scope, x *graph.Node) []*graph.Node {
		tr.store.SetTraining(x.Graph(), training)
		y := l(scope, x)
		weights := graph.Sin(graph.AddScalar(graph.IotaFull(x.Graph(), y.Shape()), 0.5))
		inputs := []*graph.Node{x}
		tr.names = []string{"result", "gradient of x"}
		for v := range tr.store.IterVariables() {
			if v.Trainable {
				inputs, tr.names = append(inputs, v.NodeValue(x.Graph())), append(tr.names, "gradient of "+v.Path())
			}
		}
		return append([]*graph.Node{y}, graph.Gradient(graph.ReduceAllSum(graph.Mul(y, weights)), inputs...)...)
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func (tr *trained) step(t *testing.T, x *tensors.Tensor) outcome {
	t.Helper()
	outs, err := tr.exec.Call(x)
	if err != nil {
		t.Fatal(err)
	}
	found := outcome{}
	for i, out := range outs {
		found[tr.names[i]] = numbersOf(t, out)
	}
	for v := range tr.store.IterVariables() {
		if !strings.Contains(v.Path(), "rng") {
			found["value of "+v.Path()] = numbersOf(t, v.MustValue())
		}
	}
	return found
}

// sameAs compares outcomes with a tolerance, because sums are rounded in different orders. The
// tolerance is relative to the largest number of each tensor, or to 1 if that is larger.
func (o outcome) sameAs(t *testing.T, want outcome, tolerance float64) {
	t.Helper()
	if len(o) != len(want) {
		t.Errorf("%d tensors, want %d", len(o), len(want))
	}
	for name, w := range want {
		got := o[name]
		if got.shape != w.shape {
			t.Errorf("%s has shape %q, want %s", name, got.shape, w.shape)
			continue
		}
		largest, worst := 1.0, 0.0
		for i := range w.values {
			largest = max(largest, math.Abs(float64(w.values[i])))
			worst = max(worst, math.Abs(float64(got.values[i]-w.values[i])))
		}
		if !(worst <= tolerance*largest) {
			t.Errorf("%s differs by %g of %g", name, worst, largest)
		}
	}
}

// compare compares a layer with GoMLX's in two steps. The first step changes the variables that the
// second one uses.
func compare(t *testing.T, ours, plain layer, x *tensors.Tensor, training bool) {
	t.Helper()
	one, other := newTrained(t, ours, training), newTrained(t, plain, training)
	for range 2 {
		one.step(t, x).sameAs(t, other.step(t, x), 2e-5)
	}
}

// convolutionCase is a convolution with random options.
type convolutionCase struct {
	batch, height, width, in, out int
	kernel, stride                [2]int
	same, bias, relu, pool        bool
}

func randomConvolution(r *rand.Rand) convolutionCase {
	pick := func(from ...int) int { return from[r.IntN(len(from))] }
	c := convolutionCase{
		batch: pick(1, 2, 3), height: 5 + r.IntN(6), width: 5 + r.IntN(6), in: pick(1, 2, 3, 5, 128), out: pick(1, 4, 128, 130),
		kernel: [2]int{3, 3}, stride: [2]int{1, 1}, same: r.IntN(2) == 0, bias: r.IntN(2) == 0, relu: r.IntN(2) == 0, pool: r.IntN(2) == 0,
	}
	if r.IntN(3) == 0 {
		c.kernel = [2]int{1 + r.IntN(4), 1 + r.IntN(4)}
	}
	if r.IntN(3) == 0 {
		c.kernel = [2]int{1, 1}
	}
	if r.IntN(3) == 0 {
		c.stride = [2]int{1 + r.IntN(3), 1 + r.IntN(3)}
	}
	// After the convolution the image must still have a 2x2 window.
	c.pool = c.pool && c.stride == [2]int{1, 1}
	return c
}

func (c convolutionCase) ours(scope *model.Scope, x *graph.Node) *graph.Node {
	b := cnn.Convolution(scope, x).Channels(c.out).KernelSizePerAxis(c.kernel[0], c.kernel[1]).StridePerAxis(c.stride[0], c.stride[1]).UseBias(c.bias)
	if c.same {
		b.PadSame()
	}
	if c.relu {
		b.Relu()
	}
	if c.pool {
		b.MaxPool2x2()
	}
	return b.Done()
}

func (c convolutionCase) plain(scope *model.Scope, x *graph.Node) *graph.Node {
	var y *graph.Node
	if c.kernel[0]%2 == 0 || c.kernel[1]%2 == 0 {
		y = c.odd(scope.In("conv"), x)
	} else {
		b := layers.Convolution(scope, x).Channels(c.out).KernelSizePerAxis(c.kernel[:]...).StridePerAxis(c.stride[:]...).UseBias(c.bias)
		if c.same {
			b.PadSame()
		}
		y = b.Done()
	}
	if c.relu {
		y = activation.Relu(y)
	}
	if c.pool {
		y = builtin(y)
	}
	return y
}

// odd makes the size of a kernel odd, with zeros, because GoMLX's gradient is wrong for even ones.
func (c convolutionCase) odd(scope *model.Scope, x *graph.Node) *graph.Node {
	w := scope.VariableWithShape("weights", shapes.Make(x.DType(), c.kernel[0], c.kernel[1], c.in, c.out)).NodeValue(x.Graph())
	var zeros [2][2]int
	for axis, size := range c.kernel {
		if c.same {
			zeros[axis] = [2]int{(size - 1) / 2, size / 2}
		}
		if size%2 == 0 {
			w = withZeros(w, axis, 0, 1)
			zeros[axis][1]++
		}
	}
	y := graph.Convolve(x, w).StridePerAxis(c.stride[:]...).PaddingPerDim(zeros[:]).Done()
	if c.bias {
		y = graph.Add(y, graph.ExpandLeftToRank(scope.VariableWithShape("biases", shapes.Make(x.DType(), c.out)).NodeValue(x.Graph()), 4))
	}
	return y
}

// TestConvolutionEqualsGoMLX: values and gradients equal those of GoMLX's layers, for random sizes
// and options.
func TestConvolutionEqualsGoMLX(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	cases := []convolutionCase{ // One for each algorithm, whatever the random cases are.
		{batch: 2, height: 7, width: 6, in: 1, out: 4, kernel: [2]int{3, 3}, stride: [2]int{1, 1}, same: true, bias: true, relu: true, pool: true},
		{batch: 2, height: 6, width: 7, in: 128, out: 129, kernel: [2]int{3, 3}, stride: [2]int{1, 1}, same: true},
		{batch: 2, height: 7, width: 8, in: 128, out: 128, kernel: [2]int{3, 3}, stride: [2]int{1, 1}, bias: true},
		{batch: 2, height: 7, width: 8, in: 6, out: 5, kernel: [2]int{1, 1}, stride: [2]int{2, 3}, same: true},
		{batch: 2, height: 7, width: 8, in: 3, out: 5, kernel: [2]int{4, 4}, stride: [2]int{2, 2}, same: true, bias: true},
		{batch: 2, height: 7, width: 9, in: 1, out: 2, kernel: [2]int{2, 3}, stride: [2]int{3, 1}},
		{batch: 2, height: 8, width: 6, in: 3, out: 5, kernel: [2]int{4, 3}, stride: [2]int{4, 3}, bias: true},
		{batch: 2, height: 8, width: 9, in: 256, out: 257, kernel: [2]int{3, 3}, stride: [2]int{1, 1}, same: true, bias: true},
		{batch: 3, height: 8, width: 9, in: 256, out: 257, kernel: [2]int{3, 3}, stride: [2]int{2, 3}, same: true},
		{batch: 1, height: 8, width: 7, in: 200, out: 220, kernel: [2]int{4, 3}, stride: [2]int{2, 1}, same: true, relu: true},
		{batch: 1, height: 9, width: 8, in: 300, out: 310, kernel: [2]int{2, 3}, stride: [2]int{3, 2}, bias: true},
	}
	for range 8 {
		cases = append(cases, randomConvolution(r))
	}
	for i, c := range cases {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			compare(t, c.ours, c.plain, modelstest.Noise(uint64(i), c.batch, c.height, c.width, c.in), true)
		})
	}
}

// TestBatchNormEqualsGoMLX: values, gradients and moving averages equal those of GoMLX's layer, in
// training and in inference.
func TestBatchNormEqualsGoMLX(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 8 {
		size := []int{1 + r.IntN(5)}
		for range r.IntN(3) {
			size = append(size, 1+r.IntN(6))
		}
		size = append(size, 1+r.IntN(9))
		if len(size) == 2 {
			size[0] += 2 // With a single value per channel, every variance is zero.
		}
		momentum, epsilon := r.Float64(), math.Pow(10, -1-4*r.Float64())
		training, trainable, frozen := r.IntN(3) > 0, r.IntN(4) > 0, r.IntN(4) == 0
		name := fmt.Sprintf("%v, training %t, trainable %t, frozen averages %t, epsilon %.0e", size, training, trainable, frozen, epsilon)
		t.Run(name, func(t *testing.T) {
			ours := func(scope *model.Scope, x *graph.Node) *graph.Node {
				x = graph.AddScalar(x, 3)
				return cnn.BatchNorm(scope, x).Momentum(momentum).Epsilon(epsilon).Trainable(trainable).FrozenAverages(frozen).Done()
			}
			plain := func(scope *model.Scope, x *graph.Node) *graph.Node {
				x = graph.AddScalar(x, 3)
				b := norm.BatchNorm(scope, x, -1).Momentum(momentum).Epsilon(epsilon).Trainable(trainable).FrozenAverages(frozen)
				return b.UseBackendInference(training && trainable && !frozen).Done()
			}
			compare(t, ours, plain, modelstest.Noise(uint64(i), size...), training)
		})
	}
}

// TestBatchNormInHalfPrecision: sums over many pixels are exact, and those of float16 don't
// overflow: the result has the mean 0 and the variance 1.
func TestBatchNormInHalfPrecision(t *testing.T) {
	for _, dtype := range []dtypes.DType{dtypes.BFloat16, dtypes.Float16} {
		store := model.NewStore()
		exec := model.MustNewExec(modelstest.Backend(t), store, func(scope *model.Scope, x *graph.Node) []*graph.Node {
			store.SetTraining(x.Graph(), true)
			y := cnn.BatchNorm(scope, graph.ConvertDType(graph.AddScalar(x, 1.5), dtype)).Done()
			if y.DType() != dtype {
				t.Errorf("%s becomes %s", dtype, y.DType())
			}
			y = graph.ConvertDType(y, dtypes.Float32)
			return []*graph.Node{graph.ReduceAllMean(y), graph.ReduceAllMean(graph.Square(y))}
		})
		out, err := exec.Exec(modelstest.Noise(1, 32, 32, 32, 2))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []float32{0, 1} {
			if got := tensors.MustCopyFlatData[float32](out[i])[0]; !(math.Abs(float64(got-want)) < 0.01) {
				t.Errorf("%s: the mean of y^%d is %v, want %v", dtype, i+1, got, want)
			}
		}
	}
}

// TestConvolutionRefuses: a wrong option or shape causes an error with the value and the fix.
func TestConvolutionRefuses(t *testing.T) {
	tests := []struct {
		name  string
		size  []int
		build func(*model.Scope, *graph.Node) *graph.Node
		want  string
	}{
		{"a vector", []int{4}, func(s *model.Scope, x *graph.Node) *graph.Node { return cnn.Convolution(s, x).Done() }, "x has shape (Float32)[4]; it must be [batch, height, width, channels]"},
		{"no channels", []int{1, 4, 4, 1}, func(s *model.Scope, x *graph.Node) *graph.Node { return cnn.Convolution(s, x).KernelSize(3).Done() }, "0 channels: call Channels with at least 1"},
		{"no kernel", []int{1, 4, 4, 1}, func(s *model.Scope, x *graph.Node) *graph.Node { return cnn.Convolution(s, x).Channels(3).Done() }, "a kernel of 0 x 0 pixels: call KernelSize"},
		{"no stride", []int{1, 4, 4, 1}, func(s *model.Scope, x *graph.Node) *graph.Node {
			return cnn.Convolution(s, x).Channels(3).KernelSize(3).Strides(0).Done()
		}, "strides [0 0]: they must be at least 1"},
		{"a large kernel", []int{1, 4, 2, 1}, func(s *model.Scope, x *graph.Node) *graph.Node {
			return cnn.Convolution(s, x).Channels(3).KernelSize(3).Done()
		}, "(Float32)[1, 4, 2, 1], which is smaller than the kernel of 3 x 3 pixels: call PadSame"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := model.CallOnce(modelstest.Backend(t), model.NewStore(), tc.build, modelstest.Noise(1, tc.size...))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
