package pjrt_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/pjrt"
	"gonbatch/internal/tier"
)

// same makes ranks agree on random numbers.
const same = 20261123

var everyType = []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Int64, dtypes.BFloat16, dtypes.Float16}

// pattern is a rank's value for a collective: small whole numbers, which all types have.
func pattern(rank int, dimensions ...int) *tensors.Tensor {
	random := rand.New(rand.NewPCG(same, uint64(rank)))
	size := 1
	for _, n := range dimensions {
		size *= n
	}
	flat := make([]float32, size)
	for i := range flat {
		flat[i] = float32(random.IntN(60) - 20)
	}
	return tensors.FromFlatDataAndDimensions(flat, dimensions...)
}

func flatOf(x *tensors.Tensor) []float32 {
	if x.Shape().IsZeroSize() {
		return nil
	}
	return tensors.MustCopyFlatData[float32](x)
}

// sumOf adds up the values of n ranks.
func sumOf(n int, dimensions ...int) []float32 {
	sum := flatOf(pattern(0, dimensions...))
	for rank := 1; rank < n; rank++ {
		for i, value := range flatOf(pattern(rank, dimensions...)) {
			sum[i] += value
		}
	}
	return sum
}

// times returns the dimensions with the first axis n times as long, or n for a scalar.
func times(n int, dimensions []int) []int {
	if len(dimensions) == 0 {
		return []int{n}
	}
	return append([]int{n * dimensions[0]}, dimensions[1:]...)
}

// TestAllGather: the values of all ranks, in their order, whatever the type and shape.
func TestAllGather(t *testing.T) {
	everyLowering(t, func(t *testing.T, rank int, backend compute.Backend) {
		random := rand.New(rand.NewPCG(same, 0))
		for _, dtype := range everyType {
			for _, dimensions := range tier.Fewer([][]int{{}, {0, 3}, {1 + random.IntN(700), 3}, {1}, {5}, {3, 4}, {2, 1, 3}, {1 + random.IntN(20_000)}}, 3) {
				exec := graph.MustNewExec(backend, func(x *graph.Node) *graph.Node {
					return graph.ConvertDType(pjrt.AllGather(graph.ConvertDType(x, dtype)), dtypes.Float32)
				})
				got := exec.MustCall1(pattern(rank, dimensions...))
				want := slices.Concat(flatOf(pattern(0, dimensions...)), flatOf(pattern(1, dimensions...)))
				if shape := times(2, dimensions); !slices.Equal(got.Shape().Dimensions, shape) || !slices.Equal(flatOf(got), want) {
					t.Errorf("%s%v: the shape is %v, want %v, or the values are wrong", dtype, dimensions, got.Shape().Dimensions, shape)
				}
			}
		}
	})
}

// TestReduceScatter: each rank gets its part of the sum and of the mean, whatever the type and
// shape.
func TestReduceScatter(t *testing.T) {
	everyLowering(t, func(t *testing.T, rank int, backend compute.Backend) {
		random := rand.New(rand.NewPCG(same, 1))
		for _, dtype := range everyType {
			for _, dimensions := range tier.Fewer([][]int{{1}, {1, 0}, {1 + random.IntN(700), 3}, {3}, {2, 3}, {1, 1, 5}, {0, 3}, {1 + random.IntN(20_000)}}, 3) {
				checkScattered(t, rank, backend, dtype, dimensions)
			}
		}
	})
}

// checkScattered scatters a value of which each rank gets a part of those dimensions.
func checkScattered(t *testing.T, rank int, backend compute.Backend, dtype dtypes.DType, dimensions []int) {
	t.Helper()
	exec := graph.MustNewExec(backend, func(x *graph.Node) []*graph.Node {
		x = graph.ConvertDType(x, dtype)
		outs := []*graph.Node{graph.ConvertDType(pjrt.ReduceScatterSum(x), dtypes.Float32)}
		if dtype.IsFloat() {
			outs = append(outs, graph.ConvertDType(pjrt.ReduceScatterMean(x), dtypes.Float32))
		}
		return outs
	})
	whole := times(2, dimensions)
	sum := sumOf(2, whole...)
	want := sum[rank*len(sum)/2 : (rank+1)*len(sum)/2]
	for i, got := range exec.MustCall(pattern(rank, whole...)) {
		if !slices.Equal(got.Shape().Dimensions, dimensions) {
			t.Errorf("%s%v: the shape is %v", dtype, dimensions, got.Shape().Dimensions)
		}
		for k, value := range flatOf(got) {
			if wanted := want[k] / float32(i+1); value != wanted {
				t.Errorf("%s%v: output %d, element %d: got %v, want %v", dtype, dimensions, i, k, value, wanted)
				break
			}
		}
	}
}

// TestMixedInOneProgram: collectives of all kinds that don't depend on each other still run in a
// fixed order, and don't change their operands, which the program uses again.
func TestMixedInOneProgram(t *testing.T) {
	everyLowering(t, func(t *testing.T, rank int, backend compute.Backend) {
		const n = 8
		exec := graph.MustNewExec(backend, func(x *graph.Node) []*graph.Node {
			var all []*graph.Node
			for i := range n {
				y := graph.AddScalar(x, float64(100*i))
				all = append(all, pjrt.AllGather(y), pjrt.AllReduceSum(y), pjrt.ReduceScatterSum(y), y)
			}
			return all
		})
		for range 20 {
			outs := exec.MustCall([]float32{float32(10 * rank), float32(10*rank + 1)})
			for i := range n {
				k, own := float32(100*i), float32(100*i+10*rank)
				wants := [][]float32{{k, k + 1, k + 10, k + 11}, {2*k + 10, 2*k + 12}, {2*k + 10 + 2*float32(rank)}, {own, own + 1}}
				for j, want := range wants {
					if got := flatOf(outs[4*i+j]); !slices.Equal(got, want) {
						t.Fatalf("collective %d of %d: got %v, want %v", j, i, got, want)
					}
				}
			}
		}
	})
}

// TestGatherUndoesScatter: a reduce-scatter and an all-gather make an all-reduce.
func TestGatherUndoesScatter(t *testing.T) {
	everyLowering(t, func(t *testing.T, rank int, backend compute.Backend) {
		exec := graph.MustNewExec(backend, func(x *graph.Node) []*graph.Node {
			return []*graph.Node{pjrt.AllGather(pjrt.ReduceScatterSum(x)), pjrt.AllReduceSum(x)}
		})
		if got := exec.MustCall(pattern(rank, 1000, 3)); !got[0].Equal(got[1]) {
			t.Error("a reduce-scatter and an all-gather give another sum than an all-reduce")
		}
	})
}

// TestCollectivesRefuse: values that can't take part are refused, with the shape and the fix.
func TestCollectivesRefuse(t *testing.T) {
	everyLowering(t, func(t *testing.T, rank int, backend compute.Backend) {
		tests := []struct {
			name  string
			build func(x *graph.Node) *graph.Node
			want  string
		}{
			{"a scalar", func(x *graph.Node) *graph.Node { return pjrt.ReduceScatterSum(graph.ReduceAllSum(x)) }, "reduce-scatter of (Float32) over 2 ranks: its first axis must be a multiple"},
			{"an odd axis", pjrt.ReduceScatterSum, "reduce-scatter of (Float32)[3] over 2 ranks: its first axis must be a multiple"},
			{"bytes", func(x *graph.Node) *graph.Node { return pjrt.AllReduceSum(graph.ConvertDType(x, dtypes.Uint8)) }, "all-reduce of (Uint8)[3]: only float and int"},
			{"bools", func(x *graph.Node) *graph.Node { return pjrt.ReduceScatterSum(graph.ConvertDType(x, dtypes.Bool)) }, "reduce-scatter of (Bool)[3]: only float and int"},
		}
		for _, test := range tests {
			exec, err := graph.NewExec(backend, test.build)
			if err == nil {
				_, err = exec.Call1([]float32{1, 2, 3})
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got %v, want %q", test.name, err, test.want)
			}
		}
	})
}

// replicasShard checks XLA's own collectives on all devices of a process.
func replicasShard(t *testing.T, backend compute.Backend) {
	for _, dtype := range everyType {
		for _, dimensions := range [][]int{{replicas}, {replicas * 5, 2}} {
			exec := graph.MustNewExec(backend, func(x *graph.Node) []*graph.Node {
				x = graph.ConvertDType(x, dtype)
				return []*graph.Node{graph.ConvertDType(pjrt.ReduceScatterSum(x), dtypes.Float32), graph.ConvertDType(pjrt.AllGather(x), dtypes.Float32)}
			})
			var gathered []float32
			for rank := range replicas {
				gathered = append(gathered, flatOf(pattern(rank, dimensions...))...)
			}
			sum := sumOf(replicas, dimensions...)
			for rank, got := range onEach(t, exec, func(rank int) any { return pattern(rank, dimensions...) }) {
				part := sum[rank*len(sum)/replicas : (rank+1)*len(sum)/replicas]
				what := fmt.Sprintf("%s%v: rank %d", dtype, dimensions, rank)
				if !slices.Equal(flatOf(got[0]), part) {
					t.Errorf("%s scattered %v, want %v", what, flatOf(got[0]), part)
				}
				if !slices.Equal(flatOf(got[1]), gathered) {
					t.Errorf("%s gathered %v, want %v", what, flatOf(got[1]), gathered)
				}
			}
		}
	}
}
