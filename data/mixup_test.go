package data_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// classes returns n examples whose inputs are their numbers, twice, and whose classes are their
// numbers modulo 3.
func classes(t *testing.T, n int) data.Dataset {
	t.Helper()
	x, y := make([]float32, 2*n), make([]int32, n)
	for i := range n {
		x[2*i], x[2*i+1], y[i] = float32(i), float32(i), int32(i%3)
	}
	ds, err := data.Tensors("classes", []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, n, 2)}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(y, n, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// TestMixUp: inputs and labels are mixed by the same weights, which have the distribution Beta(a,
// a); an example is mixed in the same way in any batch, and differently in each epoch. Validations
// see the original.
func TestMixUp(t *testing.T) {
	const n, epochs, alpha = 60, 200, 0.2
	ds := data.MixUp(classes(t, n), 3, alpha, 3)
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	for epoch := range epochs {
		inputs, labels, err := data.EpochBatch(ds, epoch, all)
		if err != nil {
			t.Fatal(err)
		}
		x, y := tensors.MustCopyFlatData[float32](inputs[0]), tensors.MustCopyFlatData[float32](labels[0])
		for i := range all {
			own, label := float64(y[3*i+i%3]), y[3*i:3*i+3]
			if x[2*i] != x[2*i+1] || math.Abs(float64(label[0]+label[1]+label[2])-1) > 1e-5 {
				t.Fatalf("example %d: input %v, label %v", i, x[2*i:2*i+2], label)
			}
			if own < 0.999 && own > 0.001 { // The other example is of another class.
				other := (float64(x[2*i]) - own*float64(i)) / (1 - own)
				number := math.Round(other)
				if tolerance := 1e-3 / (1 - own); math.Abs(other-number) > tolerance || tolerance < 0.3 && label[int(number)%3] < 1-float32(own)-1e-4 {
					t.Fatalf("example %d with the label %v was mixed with example %g", i, label, other)
				}
			}
		}
		if one := pixelsOf(t, ds, epoch, 7, 5)[2:]; one[0] != x[10] {
			t.Fatal("an example is mixed differently in another batch")
		}
	}
	if inputs, labels, err := ds.Batch([]int{4, 2}); err != nil || !slices.Equal(tensors.MustCopyFlatData[float32](inputs[0]), []float32{4, 4, 2, 2}) ||
		!slices.Equal(tensors.MustCopyFlatData[float32](labels[0]), []float32{0, 1, 0, 0, 0, 1}) {
		t.Errorf("a validation sees %v with %v, %v", inputs, labels, err)
	}
}

// TestMixUpWeights: in examples that are all mixed with others of a known class, the labels show
// the weights, which have the mean and the variance of Beta(a, a).
func TestMixUpWeights(t *testing.T) {
	for _, alpha := range []float64{math.SmallestNonzeroFloat64, 0.01, 0.2, 1} {
		const n = 20_000
		x, y := make([]float32, n), make([]int32, n)
		for i := range x {
			x[i] = float32(i % 2)
		}
		plain, err := data.Tensors("two", []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, n, 1)}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(y, n, 1)})
		if err != nil {
			t.Fatal(err)
		}
		all := make([]int, n/2)
		for i := range all {
			all[i] = 2*i + 1
		}
		sum, squares, count := 0.0, 0.0, 0.0
		for _, w := range pixelsOf(t, data.MixUp(plain, 5, alpha, 1), 0, all...) {
			if w < 1 { // It was mixed with a zero.
				sum, squares, count = sum+float64(w), squares+float64(w*w), count+1
			}
		}
		mean := sum / count
		if !(mean >= 0 && mean < 1) {
			t.Errorf("alpha %g: mean %g", alpha, mean)
		}
		if alpha < 0.1 {
			continue // Most weights round to 1.
		}
		if variance, want := squares/count-mean*mean, 1/(4*(2*alpha+1)); math.Abs(mean-0.5) > 0.05 || math.Abs(variance-want) > 0.01 {
			t.Errorf("alpha %g: mean %g, variance %g, want 0.5 and %g", alpha, mean, variance, want)
		}
	}
}

// TestMixUpRefuses: errors name the dataset.
func TestMixUpRefuses(t *testing.T) {
	noise, err := data.Tensors("noise", []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]float32, 9), 9, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, ds := range map[string]data.Dataset{
		"data: mix classes: alpha must be more than 0 and at most 1, got 2":            data.MixUp(classes(t, 9), 1, 2, 3),
		"data: mix classes: there is an example of class 2, and MixUp was told of 2":   data.MixUp(classes(t, 9), 1, 0.2, 2),
		"data: mix noise: it must have one label, the number of a class, [n, 1] int32": data.MixUp(noise, 1, 0.2, 3),
		"data: mix numbered: it must have one input, of type float32":                  data.MixUp(numbered(9), 1, 0.2, 3),
	} {
		if _, _, err := data.EpochBatch(ds, 0, []int{0, 1, 2}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestMixUpOfParts: no example of a part gets anything of an example of another part, or a network
// would be trained with what it is validated with.
func TestMixUpOfParts(t *testing.T) {
	const n, first = 40, 12
	nothing := func(data.Image, *rand.Rand) error { return nil }
	ds, err := data.Tensors("images", []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]float32, n), n, 1, 1, 1)},
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(upTo(n), n, 1)})
	if err != nil {
		t.Fatal(err)
	}
	halves, err := data.SplitCounts(data.Augment(data.MixUp(ds, 1, 1, n), 1, nothing), 1, n/2, n/2)
	if err != nil {
		t.Fatal(err)
	}
	for _, half := range append(halves, data.First(data.First(halves[0], first+1), first)) {
		own := map[int]bool{}
		all := make([]int, half.Len())
		for i := range all {
			all[i] = i
		}
		for epoch := -1; epoch < 50; epoch++ {
			batch := half.Batch
			if epoch >= 0 {
				batch = func(all []int) ([]*tensors.Tensor, []*tensors.Tensor, error) {
					return data.EpochBatch(half, epoch, all)
				}
			}
			_, labels, err := batch(all)
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range tensors.MustCopyFlatData[float32](labels[0]) {
				if epoch < 0 && p > 0 {
					own[i%n] = true
				}
				if p > 0 && !own[i%n] {
					t.Fatalf("epoch %d of %s: example %d has something of example %d, of another part", epoch, half.Name(), i/n, i%n)
				}
			}
		}
	}
}

// upTo returns the numbers below n.
func upTo(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}
