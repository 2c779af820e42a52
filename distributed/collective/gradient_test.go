package collective_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed"
	"gonbatch/distributed/collective"
)

var floats = []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Float16, dtypes.BFloat16}

// TestGradients compares the gradients of random collectives, and of chains of two, with numerical
// ones of the plain model: how the sum of all ranks' losses changes with each element of each rank.
func TestGradients(t *testing.T) {
	onRanks(t, []int{1, 2, 3, 4}, true, func(t *testing.T, w *distributed.World, random *rand.Rand) {
		for range 6 {
			checkGradient(t, w, random)
		}
	})
}

// checkGradient checks the gradient of a chain. Each rank's loss is the product of its result with
// weights of its own. Inputs, weights and differences are such that all numbers are exact, and no
// two ranks hold the same extreme.
func checkGradient(t *testing.T, w *distributed.World, random *rand.Rand) {
	t.Helper()
	inputs := distinct(random, w.Size(), pick(random, floats))
	ops := []collective.Op{collective.Sum, collective.Min, collective.Max}
	if w.Size() != 3 { // Thirds are not exact.
		ops = append(ops, collective.Mean)
	}
	first := randomStep(random, w.Size(), inputs[0], ops)
	second := randomStep(random, w.Size(), first.compute(inputs)[0], []collective.Op{collective.Sum})
	chain := []step{first, second}
	weights := weightsOf(random, run(chain, inputs))
	exec := graph.MustNewExec(w.Backend(), func(x, weights *graph.Node) *graph.Node {
		x = graph.ConvertDType(x, inputs[0].dtype)
		y := x
		for _, s := range chain {
			y = s.build(w, y)
		}
		loss := graph.ReduceAllSum(graph.Mul(graph.ConvertDType(y, dtypes.Float64), weights))
		return graph.ConvertDType(graph.Gradient(loss, x)[0], dtypes.Float64)
	})
	mine := w.Rank()
	got := exec.MustCall1(inputs[mine].tensor(), weights[mine].tensor())
	for i, gradient := range flatOf(got) {
		if want := slope(chain, inputs, weights, mine, i); gradient != want {
			t.Fatalf("%+v of %s%v: the gradient of element %d is %v, want %v", chain, inputs[0].dtype, inputs[0].dimensions, i, gradient, want)
		}
	}
}

// distinct returns values of which no two ranks have the same, in any place.
func distinct(random *rand.Rand, ranks int, dtype dtypes.DType) []value {
	all := randomValues(random, ranks, []dtypes.DType{dtype})
	for len(all[0].flat) > 200 || len(all[0].flat) == 0 { // GoMLX has no gradient of an array without elements.
		all = randomValues(random, ranks, []dtypes.DType{dtype})
	}
	return apart(random, all)
}

// apart makes the values of the ranks differ in each place.
func apart(random *rand.Rand, all []value) []value {
	for i := range all[0].flat {
		for rank, other := range random.Perm(len(all)) {
			all[rank].flat[i] = float64(other*8 + random.IntN(4))
		}
	}
	return all
}

// weightsOf returns random weights of the shape of each result.
func weightsOf(random *rand.Rand, results []value) []value {
	weights := make([]value, len(results))
	for rank, result := range results {
		weights[rank] = value{dtypes.Float64, result.dimensions, make([]float64, len(result.flat))}
		for i := range weights[rank].flat {
			weights[rank].flat[i] = float64(random.IntN(9) - 4)
		}
	}
	return weights
}

// run computes a chain by the plain model, without rounding.
func run(chain []step, inputs []value) []value {
	values := slices.Clone(inputs)
	for rank := range values {
		values[rank].dtype = dtypes.Float64
	}
	for _, s := range chain {
		values = s.compute(values)
	}
	return values
}

// slope returns how the sum of all losses changes with an element of a rank's input.
func slope(chain []step, inputs, weights []value, rank, element int) float64 {
	moved := slices.Clone(inputs)
	moved[rank].flat = slices.Clone(moved[rank].flat)
	const by = 0.5
	moved[rank].flat[element] += by
	return (lossOf(run(chain, moved), weights) - lossOf(run(chain, inputs), weights)) / by
}

func lossOf(results, weights []value) (loss float64) {
	for rank, result := range results {
		for i, x := range result.flat {
			loss += x * weights[rank].flat[i]
		}
	}
	return loss
}

func flatOf(x *tensors.Tensor) []float64 {
	if x.Shape().IsZeroSize() {
		return nil
	}
	return tensors.MustCopyFlatData[float64](x)
}

// TestTies: ranks that hold the same extreme share its gradient.
func TestTies(t *testing.T) {
	onRanks(t, []int{3}, false, func(t *testing.T, w *distributed.World, _ *rand.Rand) {
		exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) *graph.Node {
			y := collective.Over(w).AllReduce(x, collective.Max)
			return graph.Gradient(graph.ReduceAllSum(graph.MulScalar(y, 4)), x)[0]
		})
		inputs := [][]float64{{1, 5, 2}, {1, 5, 3}, {1, 4, 3}}
		wants := [][]float64{{4, 6, 0}, {4, 6, 6}, {4, 0, 6}} // All ranks' gradients are 12.
		if got := flatOf(exec.MustCall1(inputs[w.Rank()])); !slices.Equal(got, wants[w.Rank()]) {
			t.Errorf("rank %d got %v, want %v", w.Rank(), got, wants[w.Rank()])
		}
	})
}

// TestSecondGradient: a gradient can be differentiated again, and a value can have several uses.
func TestSecondGradient(t *testing.T) {
	onRanks(t, []int{2}, true, func(t *testing.T, w *distributed.World, _ *rand.Rand) {
		exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) []*graph.Node {
			sum := collective.Over(w).AllReduce(x, collective.Sum) // s, on both ranks
			loss := graph.Mul(graph.Square(sum), x)                // s^2 * own, so all losses are s^3
			first := graph.Gradient(loss, x)[0]                    // 3 * s^2
			second := graph.Gradient(first, x)[0]                  // 6 * s, from both ranks
			return []*graph.Node{first, second}
		})
		got := exec.MustCall([]float64{2, 3}[w.Rank()])
		if first, second := got[0].Value(), got[1].Value(); first != 75.0 || second != 60.0 {
			t.Errorf("rank %d: the gradients are %v and %v, want 75 and 60", w.Rank(), first, second)
		}
	})
}

// TestCheckpoint: a collective in a block that is computed again in the backward pass runs once.
func TestCheckpoint(t *testing.T) {
	onRanks(t, []int{2}, false, func(t *testing.T, w *distributed.World, _ *rand.Rand) {
		all := collective.Over(w)
		exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) []*graph.Node {
			block := graph.Exp(x.Checkpoint())
			var sums []*graph.Node
			for i := range 5 {
				sums = append(sums, graph.Exp(all.AllReduce(graph.MulScalar(block, float64(i)/10), collective.Sum)))
			}
			loss := graph.ReduceAllSum(graph.Add(graph.Add(sums[0], sums[1]), graph.Mul(sums[2], graph.Add(sums[3], sums[4]))))
			return []*graph.Node{loss, graph.Gradient(loss, x)[0]}
		})
		plain := graph.MustNewExec(w.Backend(), func(both *graph.Node) []*graph.Node {
			block := graph.Exp(both)
			total := graph.ReduceAllSum(block)
			var sums []*graph.Node
			for i := range 5 {
				sums = append(sums, graph.Exp(graph.MulScalar(total, float64(i)/10)))
			}
			loss := graph.Add(graph.Add(sums[0], sums[1]), graph.Mul(sums[2], graph.Add(sums[3], sums[4])))
			return []*graph.Node{loss, graph.MulScalar(graph.Gradient(loss, both)[0], 2)} // Both ranks have the same loss.
		})
		inputs := []float64{0.25, -0.5}
		got, want := exec.MustCall(inputs[w.Rank()]), plain.MustCall(inputs)
		if g, x := fmt.Sprintf("%.9f %.9f", got[0].Value(), got[1].Value()), fmt.Sprintf("%.9f %.9f", want[0].Value(), flatOf(want[1])[w.Rank()]); g != x {
			t.Errorf("rank %d: got %s, want %s", w.Rank(), g, x)
		}
	})
}

// TestIndex: each rank knows its place in its group.
func TestIndex(t *testing.T) {
	onRanks(t, []int{1, 4}, true, func(t *testing.T, w *distributed.World, _ *rand.Rand) {
		groups := [][]int{{3, 1}, {0, 2}}
		wants := []int32{0, 1, 1, 0}
		if w.Size() == 1 {
			groups = [][]int{{0}}
		}
		some, err := collective.Among(w, groups)
		if err != nil || some.Size() != len(groups[0]) {
			t.Fatal(some.Size(), err)
		}
		exec := graph.MustNewExec(w.Backend(), func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{collective.Over(w).Index(g), some.Index(g), some.Index(g)}
		})
		got := exec.MustCall()
		if got[0].Value() != int32(w.Rank()) || got[1].Value() != wants[w.Rank()] || got[2].Value() != wants[w.Rank()] {
			t.Errorf("rank %d has the places %v", w.Rank(), got)
		}
	})
}

// TestCompositions compares gradients of functions of a sum with those that follow by hand: of the
// losses of all 3 ranks together, whose values are 1, 2 and 3.
func TestCompositions(t *testing.T) {
	onRanks(t, []int{3}, false, func(t *testing.T, w *distributed.World, _ *rand.Rand) {
		of := func(loss, x *graph.Node) *graph.Node { return graph.Gradient(graph.ReduceAllSum(loss), x)[0] }
		tests := []struct {
			name  string
			build func(x, sum *graph.Node) *graph.Node
			want  float32
		}{
			{"x times the sum", func(x, sum *graph.Node) *graph.Node { return of(graph.Mul(x, sum), x) }, 12},
			{"the sum's cube", func(x, sum *graph.Node) *graph.Node { return of(graph.Mul(sum, graph.Mul(sum, sum)), x) }, 324},
			{"the second derivative of the cube", func(x, sum *graph.Node) *graph.Node {
				return of(of(graph.Mul(sum, graph.Mul(sum, sum)), x), x)
			}, 324},
			{"a sum that the loss doesn't use", func(x, _ *graph.Node) *graph.Node { return of(graph.MulScalar(x, 2), x) }, 2},
			{"two gradients", func(x, sum *graph.Node) *graph.Node { return graph.Add(of(sum, x), of(graph.Mul(sum, sum), x)) }, 39},
			{"with respect to the sum", func(_, sum *graph.Node) *graph.Node { return of(graph.Mul(sum, sum), sum) }, 12},
		}
		for _, test := range tests {
			exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) *graph.Node {
				return test.build(x, collective.Over(w).AllReduce(x, collective.Sum))
			})
			if got := tensors.MustCopyFlatData[float32](exec.MustCall1([]float32{float32(w.Rank() + 1)})); got[0] != test.want {
				t.Errorf("%s: got %v, want %v", test.name, got[0], test.want)
			}
		}
	})
}
