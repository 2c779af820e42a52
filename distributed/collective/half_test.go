package collective_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed"
	"gonbatch/distributed/collective"
)

// TestHalf: half precision is summed in float32 and rounded once, so that small values that are
// added to a large one count, and all ranks have the same bits.
func TestHalf(t *testing.T) {
	onRanks(t, []int{3, 4}, true, func(t *testing.T, w *distributed.World, random *rand.Rand) {
		for _, dtype := range []dtypes.DType{dtypes.Float16, dtypes.BFloat16} {
			all := make([]value, w.Size())
			for rank := range all {
				all[rank] = value{dtype, []int{1200}, nil}
				for range 1200 {
					x := all[rank].rounded((random.Float64() - 0.5) * float64(int(1)<<random.IntN(12)))
					all[rank].flat = append(all[rank].flat, x)
				}
			}
			for _, s := range []step{{kind: "all-reduce"}, {kind: "all-reduce", op: collective.Mean}, {kind: "reduce-scatter"}} {
				exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) *graph.Node {
					return graph.ConvertDType(s.build(w, graph.ConvertDType(x, dtype)), dtypes.Float64)
				})
				s.compare(t, exec.MustCall1(all[w.Rank()].tensor()), s.compute(all)[w.Rank()])
			}
		}
	})
}
