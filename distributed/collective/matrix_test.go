package collective_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed"
	"gonbatch/distributed/collective"
	"gonbatch/distributed/ranktest"
)

// cell is a collective of a value, and what it must return on each rank.
type cell struct {
	step
	inputs []value
}

// pairs divides 4 ranks.
var pairs = [][]int{{3, 0}, {1, 2}}

// cells returns every collective of every type that it takes, over all ranks and over pairs, of a
// scalar, of nothing and of a vector.
func cells(random *rand.Rand, ranks int, types []dtypes.DType) (all []cell) {
	for _, dtype := range types {
		for _, dimensions := range [][]int{{}, {0}, {12}} {
			for _, groups := range [][][]int{nil, pairs} {
				inputs := valuesOf(random, ranks, dtype, dimensions)
				for _, s := range everyStep(dtype, len(dimensions) > 0) {
					s.groups = groups
					all = append(all, cell{s, inputs})
				}
			}
		}
	}
	return all
}

// everyStep returns the collectives that a type has. Scalars can't be cut.
func everyStep(dtype dtypes.DType, cuts bool) []step {
	all := []step{{kind: "broadcast", root: 1}, {kind: "all-gather"}}
	if cuts {
		all = append(all, step{kind: "all-to-all"})
	}
	for _, op := range opsOf(dtype, true) {
		all = append(all, step{kind: "all-reduce", op: op})
		if cuts {
			all = append(all, step{kind: "reduce-scatter", op: op})
		}
	}
	return all
}

// far is what the int64 of a cell are moved by, because float64 doesn't have all integers there.
const far = 1 << 61

// build adds the cell to a graph. Numbers are moved far from zero on all ranks, and back, unless
// they are added up: then, sign makes half of the ranks move to the other side.
func (c cell) build(w *distributed.World, x, sign *graph.Node) *graph.Node {
	if c.inputs[0].dtype != dtypes.Int64 {
		return graph.ConvertDType(c.step.build(w, graph.ConvertDType(x, c.inputs[0].dtype)), dtypes.Float64)
	}
	away, back := graph.Scalar(x.Graph(), dtypes.Int64, int64(far)), graph.Scalar(x.Graph(), dtypes.Int64, int64(far))
	if c.op == collective.Sum && (c.kind == "all-reduce" || c.kind == "reduce-scatter") {
		away, back = graph.Mul(away, sign), graph.ZerosLike(back)
	}
	y := c.step.build(w, graph.Add(graph.ConvertDType(x, dtypes.Int64), away))
	return graph.ConvertDType(graph.Sub(y, back), dtypes.Float64)
}

// TestEveryCell compares each collective, of each type, with the plain model, bit for bit. All are
// in one program.
func TestEveryCell(t *testing.T) {
	launchers := []ranktest.Launcher{ranktest.Torchrun, ranktest.OpenMPI}
	if !ranktest.InRank() {
		launchers = append(launchers, ranktest.Torchrun.OnGPUs(t, 4))
	}
	ranktest.RunWith(t, launchers, 4, func(t *testing.T) {
		w := open(t)
		all := cells(rand.New(rand.NewPCG(1, 2)), w.Size(), everyType)
		if len(all) != 352 {
			t.Errorf("%d cells, want 352", len(all))
		}
		exec := graph.MustNewExec(w.Backend(), func(inputs []*graph.Node) (results []*graph.Node) {
			sign := graph.ConvertDType(inputs[len(all)], dtypes.Int64)
			for i, c := range all {
				results = append(results, c.build(w, inputs[i], sign))
			}
			return results
		})
		var inputs []any
		for _, c := range all {
			inputs = append(inputs, c.inputs[w.Rank()].tensor())
		}
		signs := []float64{1, -1, 1, -1} // Each pair has both.
		for i, got := range exec.MustCall(append(inputs, tensors.FromScalar(signs[w.Rank()]))...) {
			all[i].compare(t, got, all[i].compute(all[i].inputs)[w.Rank()])
		}
	})
}

// TestEveryGradient compares the gradient of each collective with a numerical one of the plain
// model. All are in one program.
func TestEveryGradient(t *testing.T) {
	launchers := []ranktest.Launcher{ranktest.Torchrun}
	if !ranktest.InRank() {
		launchers = append(launchers, ranktest.Torchrun.OnGPUs(t, 4))
	}
	ranktest.RunWith(t, launchers, 4, func(t *testing.T) {
		w, random := open(t), rand.New(rand.NewPCG(3, 4))
		var all []cell
		for _, c := range cells(random, w.Size(), []dtypes.DType{dtypes.Float32, dtypes.BFloat16}) {
			if len(c.inputs[0].flat) > 0 {
				all = append(all, cell{c.step, apart(random, c.inputs)})
			}
		}
		var inputs []any
		weights := make([][]value, len(all))
		for i, c := range all {
			weights[i] = weightsOf(random, run([]step{c.step}, c.inputs))
			inputs = append(inputs, c.inputs[w.Rank()].tensor(), weights[i][w.Rank()].tensor())
		}
		exec := graph.MustNewExec(w.Backend(), func(inputs []*graph.Node) (gradients []*graph.Node) {
			for i, c := range all {
				x := graph.ConvertDType(inputs[2*i], c.inputs[0].dtype)
				loss := graph.ReduceAllSum(graph.Mul(graph.ConvertDType(c.step.build(w, x), dtypes.Float64), inputs[2*i+1]))
				gradients = append(gradients, graph.ConvertDType(graph.Gradient(loss, x)[0], dtypes.Float64))
			}
			return gradients
		})
		for i, got := range exec.MustCall(inputs...) {
			for element, gradient := range flatOf(got) {
				if want := slope([]step{all[i].step}, all[i].inputs, weights[i], w.Rank(), element); gradient != want {
					t.Fatalf("%+v of %s%v: the gradient of element %d is %v, want %v", all[i].step, all[i].inputs[0].dtype, all[i].inputs[0].dimensions, element, gradient, want)
				}
			}
		}
	})
}
