package collective_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed"
	"gonbatch/distributed/collective"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
)

func TestMain(m *testing.M) {
	ranktest.CompileQuickly()
	ranktest.SharePrograms()
	os.Exit(m.Run())
}

// seedVariable makes all ranks of a test draw the same random numbers.
const seedVariable = "TEST_SEED"

// onRanks runs the body on these numbers of ranks, over MPI and TCP. Even numbers also run on GPUs,
// where the test plugin stands in for XLA's, unless the test is about a transport.
func onRanks(t *testing.T, sizes []int, gpus bool, body func(t *testing.T, w *distributed.World, random *rand.Rand)) {
	t.Helper()
	if ranktest.InRank() {
		ranktest.RunWith(t, nil, 0, func(t *testing.T) {
			seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s=%d", seedVariable, seed)
			w := open(t)
			body(t, w, rand.New(rand.NewPCG(seed, 0)))
		})
		return
	}
	seed := os.Getenv(seedVariable)
	if seed == "" {
		seed = fmt.Sprint(time.Now().UnixNano())
	}
	number, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", seedVariable, err)
	}
	for _, ranks := range sizes {
		with := func(l ranktest.Launcher) ranktest.Launcher {
			return l.With(fmt.Sprintf(" of %d", ranks), seedVariable+"="+seed)
		}
		launchers := []ranktest.Launcher{with(ranktest.Torchrun)}
		if ranks > 1 {
			launchers = append(launchers, with(ranktest.OpenMPI), with(ranktest.MPICH))
		}
		if ranks%2 == 0 && gpus {
			launchers = append(launchers, with(ranktest.Torchrun.OnGPUs(t, ranks)))
		}
		shuffled := rand.New(rand.NewPCG(number, uint64(ranks))) // Over time, -short tries them all.
		shuffled.Shuffle(len(launchers), func(i, j int) { launchers[i], launchers[j] = launchers[j], launchers[i] })
		ranktest.RunWith(t, tier.Fewer(launchers, 1), ranks, nil)
	}
}

func open(t *testing.T) *distributed.World {
	t.Helper()
	w, err := distributed.Init()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := w.Barrier(); err != nil { // No rank leaves before all have found one another.
		t.Fatal(err)
	}
	return w
}

var everyType = []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Float16, dtypes.BFloat16, dtypes.Int32, dtypes.Int64, dtypes.Bool}

// pick returns one of them.
func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// randomGroups divides the ranks at random. It may return nil, for all ranks.
func randomGroups(random *rand.Rand, ranks int) [][]int {
	var sizes []int
	for size := 1; size <= ranks; size++ {
		if ranks%size == 0 {
			sizes = append(sizes, size)
		}
	}
	if random.IntN(2) == 0 {
		return nil
	}
	return slices.Collect(slices.Chunk(random.Perm(ranks), pick(random, sizes)))
}

// randomValues are each rank's value, of a random type and shape. The first axis is often a
// multiple of 12, which all groups divide.
func randomValues(random *rand.Rand, ranks int, types []dtypes.DType) []value {
	dimensions := pick(random, [][]int{{}, {1}, {7}, {0, 3}, {12}, {24, 5}, {12, 0}, {3, 2, 1}, {12, 1, 3}, {12 * (1 + random.IntN(1500))}})
	return valuesOf(random, ranks, pick(random, types), dimensions)
}

// valuesOf are each rank's value of a type and shape.
func valuesOf(random *rand.Rand, ranks int, dtype dtypes.DType, dimensions []int) []value {
	size := 1
	for _, n := range dimensions {
		size *= n
	}
	all := make([]value, ranks)
	for rank := range all {
		flat := make([]float64, size)
		for i := range flat {
			flat[i] = float64(random.IntN(60) - 20)
			if dtype == dtypes.Bool {
				flat[i] = float64(random.IntN(2))
			}
		}
		all[rank] = value{dtype, dimensions, flat}
	}
	return all
}

// randomStep returns a collective that can take a value like x.
func randomStep(random *rand.Rand, ranks int, x value, ops []collective.Op) step {
	s := step{groups: randomGroups(random, ranks), op: pick(random, ops)}
	size := ranks
	if s.groups != nil {
		size = len(s.groups[0])
	}
	kinds := []string{"all-reduce", "all-reduce", "broadcast", "all-gather"}
	if len(x.dimensions) > 0 && x.dimensions[0]%size == 0 {
		kinds = append(kinds, "reduce-scatter", "reduce-scatter", "all-to-all")
	}
	s.kind, s.root = pick(random, kinds), random.IntN(size)
	return s
}

// opsOf returns the operations that values of a type have.
func opsOf(dtype dtypes.DType, exact bool) []collective.Op {
	switch {
	case dtype == dtypes.Bool || !exact:
		return []collective.Op{collective.Min, collective.Max}
	case dtype.IsFloat():
		return []collective.Op{collective.Sum, collective.Mean, collective.Min, collective.Max}
	}
	return []collective.Op{collective.Sum, collective.Min, collective.Max}
}

// TestPrograms compares random programs of several collectives with the plain model. The result of
// one collective may be the value of another.
func TestPrograms(t *testing.T) {
	onRanks(t, []int{1, 2, 3, 4}, true, func(t *testing.T, w *distributed.World, random *rand.Rand) {
		for range 3 {
			p := randomProgram(random, w.Size())
			exec := graph.MustNewExec(w.Backend(), func(inputs []*graph.Node) []*graph.Node { return p.build(w, inputs) })
			for range 2 {
				for i, got := range exec.MustCall(p.inputsOf(w.Rank())...) {
					p.steps[i].compare(t, got, p.values[len(p.inputs)+i][w.Rank()])
				}
			}
		}
	})
}

// program is a random program with the values of all ranks, of inputs and of results.
type program struct {
	inputs [][]value
	values [][]value
	steps  []programStep
}

type programStep struct {
	step
	of int // Of the values.
}

func randomProgram(random *rand.Rand, ranks int) (p program) {
	for range 4 {
		p.inputs = append(p.inputs, randomValues(random, ranks, everyType))
	}
	p.values = slices.Clone(p.inputs)
	rough := make([]bool, len(p.values)) // It has fractions, so that sums depend on their order.
	for range 8 {
		of := random.IntN(len(p.values))
		x := p.values[of]
		s := programStep{randomStep(random, ranks, x[0], opsOf(x[0].dtype, !rough[of])), of}
		p.steps, p.values = append(p.steps, s), append(p.values, s.compute(x))
		rough = append(rough, rough[of] || s.op == collective.Mean)
	}
	return p
}

// build returns the results of all steps, as float64.
func (p program) build(w *distributed.World, inputs []*graph.Node) []*graph.Node {
	values := make([]*graph.Node, len(inputs))
	for i, x := range inputs {
		values[i] = graph.ConvertDType(x, p.inputs[i][0].dtype)
	}
	var results []*graph.Node
	for _, s := range p.steps {
		y := s.build(w, values[s.of])
		values, results = append(values, y), append(results, graph.ConvertDType(y, dtypes.Float64))
	}
	return results
}

func (p program) inputsOf(rank int) (all []any) {
	for _, input := range p.inputs {
		all = append(all, input[rank].tensor())
	}
	return all
}

func (v value) tensor() *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(v.flat, v.dimensions...)
}

// compare checks a result, as float64, bit for bit.
func (s step) compare(t *testing.T, got *tensors.Tensor, want value) {
	t.Helper()
	what := fmt.Sprintf("%+v of %s%v", s, want.dtype, want.dimensions)
	if !slices.Equal(got.Shape().Dimensions, want.dimensions) {
		t.Fatalf("%s: the shape is %v", what, got.Shape())
	}
	if got.Shape().IsZeroSize() {
		return
	}
	for i, x := range tensors.MustCopyFlatData[float64](got) {
		if math.Float64bits(x) != math.Float64bits(want.flat[i]) && !(math.IsNaN(x) && math.IsNaN(want.flat[i])) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, x, want.flat[i])
		}
	}
}

// TestExtremes: NaN, infinities and zeros of both signs have the promised minimum and maximum.
func TestExtremes(t *testing.T) {
	onRanks(t, []int{1, 3}, false, func(t *testing.T, w *distributed.World, random *rand.Rand) {
		special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1, -1}
		all := make([]value, w.Size())
		for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.BFloat16, dtypes.Float16} {
			for rank := range all {
				all[rank] = value{dtype, []int{240}, nil}
				for range 240 {
					all[rank].flat = append(all[rank].flat, pick(random, special))
				}
			}
			for _, s := range []step{{kind: "all-reduce", op: collective.Min}, {kind: "all-reduce", op: collective.Max}, {kind: "reduce-scatter", op: collective.Min}, {kind: "reduce-scatter", op: collective.Max}} {
				exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) *graph.Node {
					return graph.ConvertDType(s.build(w, graph.ConvertDType(x, dtype)), dtypes.Float64)
				})
				s.compare(t, exec.MustCall1(all[w.Rank()].tensor()), s.compute(all)[w.Rank()])
			}
		}
	})
}

// TestRefuses: what can't work is refused, on one rank as on several, with the rank, the type, the
// shape and the fix.
func TestRefuses(t *testing.T) {
	onRanks(t, []int{1, 2}, true, func(t *testing.T, w *distributed.World, random *rand.Rand) {
		all, who := collective.Over(w), fmt.Sprintf("collective: rank %d of %d: ", w.Rank(), w.Size())
		as := func(dtype dtypes.DType) func(x *graph.Node) *graph.Node {
			return func(x *graph.Node) *graph.Node { return graph.ConvertDType(x, dtype) }
		}
		tests := []struct {
			build func(x *graph.Node) *graph.Node
			want  string
		}{
			{func(x *graph.Node) *graph.Node { return all.AllReduce(as(dtypes.Bool)(x), collective.Sum) }, "all-reduce (sum) of (Bool)[5]: bools have none: use Min (and) or Max (or), or convert it to int32"},
			{func(x *graph.Node) *graph.Node { return all.ReduceScatter(as(dtypes.Int32)(x), collective.Mean) }, "reduce-scatter (mean) of (Int32)[5]: the mean of integers is not one: convert it to a float first"},
			{func(x *graph.Node) *graph.Node { return all.AllGather(as(dtypes.Uint8)(x)) }, "all-gather of (Uint8)[5]: only float32, float64, float16, bfloat16, int32, int64 and bool can take part: convert it first"},
			{func(x *graph.Node) *graph.Node { return all.AllReduce(x, 7) }, "all-reduce (unknown operation) of (Float32)[5]: use Sum, Mean, Min or Max"},
			{func(x *graph.Node) *graph.Node { return all.AllToAll(graph.ReduceAllSum(x)) }, "all-to-all of (Float32): its first axis must be a multiple of the number of ranks in the group, " + fmt.Sprint(w.Size()) + ": pad it"},
			{func(x *graph.Node) *graph.Node { return all.Broadcast(x, w.Size()) }, "broadcast of (Float32)[5]: the root " + fmt.Sprint(w.Size()) + " is not in the group"},
		}
		for _, test := range tests {
			exec, err := graph.NewExec(w.Backend(), test.build)
			if err == nil {
				_, err = exec.Call1([]float32{1, 2, 3, 4, 5})
			}
			if err == nil || !strings.Contains(err.Error(), who+test.want) {
				t.Errorf("got %v, want %q", err, who+test.want)
			}
		}
		for _, groups := range [][][]int{nil, {}, {{0}, {0}}, {{0, 1, 2, 3, 4}}, {{}}, {{-1}}, {{0}, {1, 2}}} {
			if _, err := collective.Among(w, groups); err == nil || !strings.Contains(err.Error(), who) {
				t.Errorf("groups %v: %v", groups, err)
			}
		}
	})
}

// TestRefusesFunctions: a collective in the body of a loop is refused.
func TestRefusesFunctions(t *testing.T) {
	onRanks(t, []int{2}, false, func(t *testing.T, w *distributed.World, _ *rand.Rand) {
		_, err := graph.MustNewExec(w.Backend(), func(x *graph.Node) *graph.Node {
			again := graph.NewClosure(x.Graph(), func(g *graph.Graph) []*graph.Node {
				return []*graph.Node{graph.LessThan(graph.Parameter(g, "x", x.Shape()), graph.Const(g, float32(3)))}
			})
			body := graph.NewClosure(x.Graph(), func(g *graph.Graph) []*graph.Node {
				return []*graph.Node{collective.Over(w).AllReduce(graph.Parameter(g, "x", x.Shape()), collective.Sum)}
			})
			return graph.While(again, body, x)[0]
		}).Call1(float32(1))
		if err == nil || !strings.Contains(err.Error(), "a collective can't be in the body of a While") {
			t.Errorf("got %v", err)
		}
	})
}
