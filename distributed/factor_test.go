package distributed_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
)

// TestFactors: a rank's parts of gradients are those of the all-reduce, for layers of all forms and
// random sizes. Of a large weight with few examples, the ranks exchange the factors of the
// gradient, and nothing else.
func TestFactors(t *testing.T) {
	if !ranktest.InRank() {
		ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 3, nil)
		ranktest.RunWith(t, []ranktest.Launcher{ranktest.Torchrun}, 2, nil)
		return
	}
	ranktest.RunWith(t, nil, 0, func(t *testing.T) {
		w, random := initWorld(t), rand.New(rand.NewPCG(31, 32)) // The same on all ranks.
		used := map[bool]int{}
		cases := tier.Tries(24, 8)
		for i := range cases {
			c := randomLayer(random, i)
			c.check(t, w, random)
			used[c.exchangesFactors(w.Size())]++
		}
		if min(used[true], used[false]) < cases/6 {
			t.Errorf("%d gradients by their factors and %d by a reduce-scatter: the test should have more", used[true], used[false])
		}
	})
}

// layer is a form of a layer with a weight, and its sizes: k examples, m inputs and n outputs.
type layer struct {
	form    string
	dtype   dtypes.DType
	k, m, n int
	uneven  bool // The ranks have different numbers of examples.
}

var layerForms = []string{"x W", "x W^T", "x W of 3 axes", "x W + x W", "W x", "x (W^T)^T"}

func randomLayer(random *rand.Rand, i int) layer {
	size := func() int {
		return []int{600, 615, 768, 1001, 1026, 1200}[random.IntN(6)]
	}
	c := layer{form: layerForms[i%len(layerForms)], dtype: dtypes.Float32, k: 2 * (1 + random.IntN(8)), m: size(), n: size()}
	if random.IntN(4) == 0 {
		c.dtype = dtypes.Float64
	}
	if random.IntN(4) == 0 {
		c.n = c.m
	}
	c.uneven = random.IntN(6) == 0
	if random.IntN(4) == 0 {
		c.k *= 16
	}
	return c
}

// transposed reports whether the weight has a row for each output.
func (c layer) transposed() bool { return c.form == "x W^T" || c.form == "x (W^T)^T" }

// exchangesFactors reports whether that should be faster than a reduce-scatter.
func (c layer) exchangesFactors(ranks int) bool {
	if c.uneven || c.form == "W x" || c.form == "x W + x W" { // Examples along the last axis; a sum of two products.
		return false
	}
	rows := c.m
	if c.transposed() {
		rows = c.n
	}
	return c.m*c.n >= 1<<18 && rows%ranks == 0 && 2*ranks*c.k*(c.m+c.n) <= c.m*c.n
}

// outputs returns those of the layer.
func (c layer) outputs(x, weight *graph.Node) *graph.Node {
	switch c.form {
	case "x W^T":
		return graph.Einsum("km,nm->kn", x, weight)
	case "x (W^T)^T":
		return graph.MatMul(x, graph.Transpose(weight, 0, 1))
	case "x W of 3 axes":
		return graph.DotGeneral(graph.Reshape(x, -1, 2, c.m), []int{2}, nil, weight, []int{0}, nil)
	case "W x":
		return graph.DotGeneral(weight, []int{0}, nil, graph.Transpose(x, 0, 1), []int{0}, nil)
	case "x W + x W":
		return graph.Add(graph.MatMul(x, weight), graph.Sin(graph.MatMul(x, weight)))
	}
	return graph.MatMul(x, weight)
}

// check compares this rank's part of the gradient with that of the average.
func (c layer) check(t *testing.T, w *distributed.World, random *rand.Rand) {
	t.Helper()
	shape := shapes.Make(c.dtype, c.m, c.n)
	if c.transposed() {
		shape = shapes.Make(c.dtype, c.n, c.m)
	}
	store := model.NewStore()
	gradient := func(x *graph.Node) *graph.Node {
		v := store.VariableWithShape("/w", shape, func(g *graph.Graph, shape shapes.Shape) *graph.Node {
			return graph.Cos(graph.IotaFull(g, shape))
		})
		x = graph.ConvertDType(x, c.dtype)
		return graph.Gradient(graph.ReduceAllSum(graph.Tanh(c.outputs(x, v.NodeValue(x.Graph())))), v.NodeValue(x.Graph()))[0]
	}
	examples := c.k
	if c.uneven {
		examples += 2 * w.Rank()
	}
	x, own := make([][]float64, examples), rand.New(rand.NewPCG(random.Uint64(), uint64(w.Rank())))
	for i := range x {
		x[i] = make([]float64, c.m)
		for j := range x[i] {
			x[i][j] = own.Float64() - 0.5
		}
	}
	average := model.MustNewExec(w.Backend(), store, func(_ *model.Scope, x *graph.Node) *graph.Node {
		return w.AverageGradients(store, []*graph.Node{gradient(x)})[0]
	}).MustCall1(x)
	want, err := w.CutPart(average)
	if err != nil {
		t.Fatal(err)
	}
	exec := model.MustNewExec(w.Backend(), store, func(_ *model.Scope, x *graph.Node) *graph.Node {
		return w.ScatterGradients(store, []*graph.Node{gradient(x)})[0]
	})
	pjrt.StartTrace(1000)
	got := exec.MustCall1(x)
	operations, _ := pjrt.StopTrace()
	if difference := furthestApart(elementsOf(t, got), elementsOf(t, want)); !(difference < 1e-5) {
		t.Errorf("%+v: rank %d's part differs from that of the average by %g", c, w.Rank(), difference)
	}
	reduces := slices.ContainsFunc(operations, func(o pjrt.Operation) bool { return strings.HasPrefix(o.Name, "reduce-scatter") })
	gathers := slices.ContainsFunc(operations, func(o pjrt.Operation) bool { return strings.HasPrefix(o.Name, "all-gather") })
	if factors := c.exchangesFactors(w.Size()); gathers != factors || reduces == factors {
		t.Errorf("%+v: the ranks exchange factors: %v, reduce the gradient: %v; want factors: %v", c, gathers, reduces, factors)
	}
}

// furthestApart returns the largest difference, as a part of the largest number.
func furthestApart(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	largest, worst := 0.0, 0.0
	for i := range want {
		largest, worst = max(largest, math.Abs(want[i])), max(worst, math.Abs(got[i]-want[i]))
		if math.IsNaN(got[i]) {
			return math.NaN()
		}
	}
	return worst / largest
}

// TestPartsInPlace: with large dense layers, the ranks that divide the update have the weights of
// those that don't, after several steps of each optimizer. The weights stay where they are in
// memory, and are the same on all ranks, to the bit.
func TestPartsInPlace(t *testing.T) {
	if !ranktest.InRank() {
		ranktest.RunWith(t, []ranktest.Launcher{ranktest.MPICH}, 3, nil)
		ranktest.RunWith(t, tier.Fewer([]ranktest.Launcher{ranktest.OpenMPI, ranktest.Torchrun}, 0), 2, nil)
		return
	}
	ranktest.RunWith(t, nil, 0, func(t *testing.T) {
		w := initWorld(t)
		adam, adamW := optimizer.Adam().LearningRate(0.001), optimizer.Adam().LearningRate(0.001).WeightDecay(0.1)
		for _, o := range tier.Fewer([]optimizer.Interface{adam.Done(), optimizer.StochasticGradientDescent().WithLearningRate(0.01).Done(), adamW.Done()}, 2) {
			whole, _ := trainDense(t, w, o.(train.OptimizeWithGradients), false)
			parts, moved := trainDense(t, w, o.(train.OptimizeWithGradients), true)
			for path, want := range whole {
				if difference := furthestApart(parts[path], want); !(difference < 2e-4) {
					t.Errorf("%T: %s differs by %g", o, path, difference)
				}
			}
			if len(moved) > 0 {
				t.Errorf("%T: %q were moved", o, moved)
			}
		}
	})
}

// trainDense trains a network for some steps, and returns its variables and which of them moved.
func trainDense(t *testing.T, w *distributed.World, o train.OptimizeWithGradients, divides bool) (values map[string][]float64, moved []string) {
	t.Helper()
	const batch, width = 8, 1800 // So that one call computes a product and updates the weights.
	store := model.NewStore()
	store.SetParam("/"+model.ParamInitialSeed, int64(5))
	exec := model.MustNewExec(w.Backend(), store, func(scope *model.Scope, x *graph.Node) *graph.Node {
		g := x.Graph()
		y := graph.Tanh(layers.Dense(scope.In("first"), x, true, width))
		y = graph.Tanh(layers.Dense(scope.In("second"), y, true, width))
		y = layers.Dense(scope.In("last"), y, true, 7)
		loss := graph.ReduceAllMean(graph.Square(y))
		gradients := scope.BuildTrainableVariablesGradientsGraph(loss)
		if !divides {
			o.UpdateGraphWithGradients(scope, w.AverageGradients(store, gradients), loss.DType())
			return loss
		}
		var weights []*model.Variable
		for v := range scope.IterVariables() {
			if v.Trainable && v.InUseByGraph(g) {
				weights = append(weights, v)
			}
		}
		parts := w.ScatterGradients(store, gradients)
		w.UpdateParts(store, g, weights, func() { o.UpdateGraphWithGradients(scope, parts, loss.DType()) })
		return loss
	})
	random := rand.New(rand.NewPCG(7, uint64(w.Rank())))
	var at map[string]*byte
	pjrt.StartTrace(10_000)
	for step := range 4 {
		x := make([][]float32, batch)
		for i := range x {
			for range width {
				x[i] = append(x[i], float32(random.NormFloat64()))
			}
		}
		exec.MustCall1(x)
		if step == 2 {
			at = addresses(t, store)
		}
	}
	operations, _ := pjrt.StopTrace()
	isAdam := reflect.TypeOf(o) == reflect.TypeOf(optimizer.Adam().Done())
	together := slices.ContainsFunc(operations, func(o pjrt.Operation) bool { return o.Kind == pjrt.TrainedProduct })
	if divides && pjrt.HasKernels() && together != isAdam {
		t.Errorf("%T: a call computes a product and updates a part of the weights: %v", o, together)
	}
	for path, address := range addresses(t, store) {
		if address != at[path] {
			moved = append(moved, path)
		}
	}
	values = map[string][]float64{}
	for v := range store.IterVariables() {
		if v.Trainable {
			values[v.Path()] = elementsOf(t, v.MustValue())
			sameOnAllRanks(t, w, v)
		}
	}
	return values, moved
}

// addresses returns where the large variables are.
func addresses(t *testing.T, store *model.Store) map[string]*byte {
	t.Helper()
	all := map[string]*byte{}
	for v := range store.IterVariables() {
		if v.Shape().Size() < 1<<14 {
			continue
		}
		if err := v.MustValue().ConstBytes(func(data []byte) { all[v.Path()] = &data[0] }); err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 2 {
		t.Fatalf("only %d large variables", len(all))
	}
	return all
}

// sameOnAllRanks checks that all ranks have the same bits.
func sameOnAllRanks(t *testing.T, w *distributed.World, v *model.Variable) {
	t.Helper()
	var mine []byte
	if err := v.MustValue().ConstBytes(func(data []byte) { mine = slices.Clone(data) }); err != nil {
		t.Fatal(err)
	}
	all, err := w.AllGather(mine)
	if err != nil {
		t.Fatal(err)
	}
	for rank, theirs := range all {
		if string(theirs) != string(mine) {
			t.Errorf("%s differs between ranks %d and %d", v.Path(), w.Rank(), rank)
		}
	}
}
