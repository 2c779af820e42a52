package augment_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/data"
	"gonbatch/internal/tier"
	"gonbatch/models/augment"
	"gonbatch/models/modelstest"
)

type function func(scope *model.Scope, x *graph.Node) *graph.Node

// program runs a function in a store of its own.
type program struct {
	store *model.Store
	exec  *model.Exec
}

// compiled returns a program with the results of build.
func compiled(t testing.TB, training bool, build func(scope *model.Scope, x *graph.Node) []*graph.Node) program {
	t.Helper()
	p := program{store: model.NewStore()}
	var err error
	p.exec, err = model.NewExec(modelstest.Backend(t), p.store, func(scope *model.Scope, x *graph.Node) []*graph.Node {
		p.store.SetTraining(x.Graph(), training)
		return build(scope, x)
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run seeds the random numbers and runs the program.
func (p program) run(t testing.TB, seed int64, x *tensors.Tensor) [][]float32 {
	t.Helper()
	if err := p.store.SetRNGStateFromSeed(seed); err != nil {
		t.Fatal(err)
	}
	return p.next(t, x)
}

// next runs the program with the random numbers that follow.
func (p program) next(t testing.TB, x *tensors.Tensor) (all [][]float32) {
	t.Helper()
	outs, err := p.exec.Call(x)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range outs {
		all = append(all, modelstest.Values(t, out))
	}
	return all
}

// numbers returns the random numbers of each example that all functions draw, one after the other.
func numbers(t testing.TB, batch int) program {
	t.Helper()
	return compiled(t, true, func(scope *model.Scope, x *graph.Node) (all []*graph.Node) {
		for _, f := range functions {
			all = append(all, scope.RandomUniform(x.Graph(), shapes.Make(dtypes.Float32, batch, f.draws)))
		}
		return all
	})
}

// pixels returns images with values from 0 to 1.
func pixels(seed uint64, size ...int) *tensors.Tensor {
	x := modelstest.Noise(seed, size...)
	_ = tensors.MutableFlatData(x, func(flat []float32) {
		for i := range flat {
			flat[i] = (flat[i] + 1) / 2
		}
	})
	return x
}

// words are the random numbers of an example, for the transforms of package data. rand.Rand takes a
// fraction from the low bits of a word, and an integer from the high bits.
type words []uint64

func (w *words) Uint64() uint64 {
	next := (*w)[0]
	*w = (*w)[1:]
	return next
}

func fractions(numbers []float32) (w words) {
	for _, u := range numbers {
		w = append(w, uint64(float64(u)*(1<<53)))
	}
	return w
}

func integers(numbers []float32) (w words) {
	for _, u := range numbers {
		w = append(w, uint64(float64(u)*(1<<32))<<32)
	}
	return w
}

var functions = []struct {
	name  string
	graph function
	// worker is the transform of package data, which takes so many random numbers.
	worker data.Transform
	draws  int
	words  func([]float32) words
	exact  bool // It moves pixels only.
}{
	{"flip", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomFlip(s, x, 0.4) }, data.RandomFlip(0.4), 1, fractions, true},
	{"always flip", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomFlip(s, x, 1) }, data.RandomFlip(1), 1, fractions, true},
	{"crop 1", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomCrop(s, x, 1) }, data.RandomCrop(1), 2, integers, true},
	{"crop 4", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomCrop(s, x, 4) }, data.RandomCrop(4), 2, integers, true},
	{"crop 30", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomCrop(s, x, 30) }, data.RandomCrop(30), 2, integers, true},
	{"color", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomColor(s, x, 0.4, 0.9, 1) }, data.RandomColor(0.4, 0.9, 1), 3, fractions, false},
	{"brightness", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomColor(s, x, 0.7, 0, 0) }, data.RandomColor(0.7, 0, 0), 3, fractions, false},
	{"contrast", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomColor(s, x, 0, 0.5, 0) }, data.RandomColor(0, 0.5, 0), 3, fractions, false},
	{"saturation", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomColor(s, x, 0, 0, 0.5) }, data.RandomColor(0, 0, 0.5), 3, fractions, false},
	{"resized crop", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomResizedCrop(s, x, 0.08) }, data.RandomResizedCrop(0.08), 4, fractions, false},
	{"large resized crop", func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomResizedCrop(s, x, 0.9) }, data.RandomResizedCrop(0.9), 4, fractions, false},
}

var sizes = [][]int{{1, 1, 1, 1}, {6, 1, 1, 3}, {5, 1, 7, 3}, {3, 8, 1, 2}, {4, 8, 5, 4}, {1, 6, 6, 3}, {9, 9, 12, 3}, {2, 40, 33, 1}}

// TestSameAsWorker: with the same random numbers, each example becomes what the transform of
// package data makes of it, in each type.
func TestSameAsWorker(t *testing.T) {
	for _, size := range tier.Half(sizes) {
		random := numbers(t, size[0])
		for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16, dtypes.Float16, dtypes.Float64} {
			if dtype != dtypes.Float32 && size[0] != 5 && size[0] != 9 {
				continue
			}
			p := compiled(t, true, func(scope *model.Scope, x *graph.Node) []*graph.Node { return inType(dtype, scope, x) })
			for seed := range int64(3) {
				results, draws := p.run(t, seed, pixels(uint64(seed)+1, size...)), random.run(t, seed, modelstest.Noise(1, 1))
				for k, f := range functions {
					t.Run(fmt.Sprint(dtype, " ", f.name, " ", size, " ", seed), func(t *testing.T) {
						want := slices.Clone(results[0])
						for i, im := range images(want, size) {
							w := f.words(draws[k][i*f.draws : (i+1)*f.draws])
							if err := f.worker(im, rand.New(&w)); err != nil {
								t.Fatal(err)
							}
						}
						compare(t, results[1+k], want, tolerance(dtype, f.exact))
					})
				}
			}
		}
	}
}

// inType returns images in a type, and what each function makes of them.
func inType(dtype dtypes.DType, scope *model.Scope, x *graph.Node) []*graph.Node {
	x = graph.ConvertDType(x, dtype)
	all := []*graph.Node{graph.ConvertDType(x, dtypes.Float32)}
	for _, f := range functions {
		y := f.graph(scope, x)
		if !y.Shape().Equal(x.Shape()) {
			panic(fmt.Errorf("%s: the result has the shape %s, the images %s", f.name, y.Shape(), x.Shape()))
		}
		all = append(all, graph.ConvertDType(y, dtypes.Float32))
	}
	return all
}

// tolerance is how far results may be apart that are rounded once to a type.
func tolerance(dtype dtypes.DType, exact bool) float64 {
	switch {
	case exact:
		return 0
	case dtype == dtypes.BFloat16:
		return math.Pow(2, -8)
	case dtype == dtypes.Float16:
		return math.Pow(2, -10)
	}
	return 1e-5
}

func compare(t *testing.T, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= tolerance) {
			t.Fatalf("value %d is %g, want %g", i, got[i], want[i])
		}
	}
}

// images divides the values of a batch into images.
func images(values []float32, size []int) (all []data.Image) {
	for part := range slices.Chunk(values, size[1]*size[2]*size[3]) {
		all = append(all, data.Image{Height: size[1], Width: size[2], Channels: size[3], Pixels: part})
	}
	return all
}

// TestNormalize compares with data.Normalize, in training and elsewhere.
func TestNormalize(t *testing.T) {
	mean, std := []float32{0.1, 0.5, 0.4, 0.9}, []float32{0.2, 1, 3, 0.05}
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16} {
		for _, size := range [][]int{{1, 1, 1, 1}, {4, 8, 5, 4}, {2, 6, 6, 3}} {
			for _, training := range []bool{true, false} {
				mean, std := mean[:size[3]], std[:size[3]]
				p := compiled(t, training, func(_ *model.Scope, x *graph.Node) []*graph.Node {
					x = graph.ConvertDType(x, dtype)
					y := augment.Normalize(x, mean, std)
					return []*graph.Node{graph.ConvertDType(x, dtypes.Float32), graph.ConvertDType(y, dtypes.Float32)}
				})
				results := p.run(t, 1, pixels(1, size...))
				for _, im := range images(results[0], size) {
					if err := data.Normalize(mean, std)(im, nil); err != nil {
						t.Fatal(err)
					}
				}
				compare(t, results[1], results[0], 20*tolerance(dtype, false)) // Values are up to 18.
			}
		}
	}
}

// TestEvaluation: outside of training, and if there is nothing to change, images are the same, and
// no number is drawn.
func TestEvaluation(t *testing.T) {
	off := []function{
		func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomFlip(s, x, 0) },
		func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomCrop(s, x, 0) },
		func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomColor(s, x, 0, 0, 0) },
		func(s *model.Scope, x *graph.Node) *graph.Node { return augment.RandomResizedCrop(s, x, 1) },
	}
	on := []function{func(s *model.Scope, x *graph.Node) *graph.Node { y, _ := augment.MixUp(s, x, 1); return y }}
	for _, f := range functions {
		on = append(on, f.graph)
	}
	for training, list := range map[bool][]function{false: on, true: off} {
		p := compiled(t, training, func(scope *model.Scope, x *graph.Node) (all []*graph.Node) {
			for i, f := range list {
				all = append(all, f(scope, x))
				if all[i] != x {
					t.Errorf("training %t, function %d: it returns another node than its images", training, i)
				}
			}
			return all
		})
		x := pixels(1, 3, 4, 5, 3)
		for _, y := range p.next(t, x) {
			compare(t, y, modelstest.Values(t, x), 0)
		}
		if v := p.store.GetVariable("/" + model.RNGStateVariableName); v != nil {
			t.Errorf("training %t: the functions have drawn numbers", training)
		}
	}
}

// TestDraws: examples, functions and steps have different random numbers, and the same seed has the
// same.
func TestDraws(t *testing.T) {
	const batch = 64
	x := tensors.FromFlatDataAndDimensions(slices.Repeat(modelstest.Values(t, pixels(1, 8, 8, 3)), batch), batch, 8, 8, 3)
	all := func(s *model.Scope, x *graph.Node) *graph.Node {
		x = augment.RandomColor(s, augment.RandomFlip(s, augment.RandomCrop(s, x, 4), 0.5), 0.4, 0.4, 0.4)
		return augment.RandomResizedCrop(s, x, 0.3)
	}
	p := compiled(t, true, func(s *model.Scope, x *graph.Node) []*graph.Node { return []*graph.Node{all(s, x), all(s, x)} })
	step := p.run(t, 5, x)
	other := p.next(t, x)
	seen := map[string]bool{}
	for _, result := range slices.Concat(step, other) {
		for im := range slices.Chunk(result, 8*8*3) {
			seen[fmt.Sprint(im)] = true
		}
	}
	if len(seen) != 4*batch {
		t.Errorf("%d different images of %d", len(seen), 4*batch)
	}
	again := p.run(t, 5, x)
	compare(t, again[0], step[0], 0)
	compare(t, again[1], step[1], 0)
}

// TestFrequencies: flips have their probability, and crops are at each place equally often.
func TestFrequencies(t *testing.T) {
	const batch, padding = 20_000, 2
	x := make([]float32, 0, batch*3*3)
	for range batch {
		x = append(x, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	}
	p := compiled(t, true, func(s *model.Scope, x *graph.Node) []*graph.Node {
		return []*graph.Node{augment.RandomFlip(s, x, 0.3), augment.RandomCrop(s, x, padding)}
	})
	results := p.run(t, 1, tensors.FromFlatDataAndDimensions(x, batch, 3, 3, 1))
	flips, places := 0, map[string]int{}
	for im := range slices.Chunk(results[0], 9) {
		if im[0] == 3 {
			flips++
		}
	}
	if share := float64(flips) / batch; math.Abs(share-0.3) > 5*math.Sqrt(0.3*0.7/batch) {
		t.Errorf("a share of %g is flipped, want 0.3", share)
	}
	for im := range slices.Chunk(results[1], 9) {
		places[fmt.Sprint(im)]++
	}
	chi2, want := 0.0, float64(batch)/25
	for _, n := range places {
		chi2 += (float64(n) - want) * (float64(n) - want) / want
	}
	if len(places) != 25 || chi2 > 52 { // 0.1 % of the distribution with 24 degrees of freedom is beyond 51.2.
		t.Errorf("crops at %d places of 25, chi-squared is %g", len(places), chi2)
	}
}

// TestOtherTypes: flips and crops move pixels of any type as they move those of float32.
func TestOtherTypes(t *testing.T) {
	x := tensors.FromFlatDataAndDimensions([]float32{0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1}, 2, 2, 3, 1)
	moved := func(dtype dtypes.DType) []float32 {
		p := compiled(t, true, func(s *model.Scope, x *graph.Node) []*graph.Node {
			y := augment.RandomFlip(s, augment.RandomCrop(s, graph.ConvertDType(x, dtype), 2), 0.5)
			return []*graph.Node{graph.ConvertDType(y, dtypes.Float32)}
		})
		return p.run(t, 1, x)[0]
	}
	want := moved(dtypes.Float32)
	for _, dtype := range []dtypes.DType{dtypes.Uint8, dtypes.Int32, dtypes.Bool} {
		compare(t, moved(dtype), want, 0)
	}
}
