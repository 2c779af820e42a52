package collective_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/prometheus/procfs"

	"gonbatch/distributed"
	"gonbatch/distributed/collective"
	"gonbatch/distributed/ranktest"
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

// TestHalfTravels: values of half precision travel as they are, in half of the bytes of float32.
func TestHalfTravels(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.Torchrun}, 3, func(t *testing.T) {
		w := open(t)
		sent := func(dtype dtypes.DType) float64 {
			exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) *graph.Node {
				half := graph.ConvertDType(graph.IotaFull(x.Graph(), shapes.Make(dtypes.Float32, 1<<20)), dtype)
				return graph.ReduceAllSum(collective.Over(w).AllReduce(half, collective.Sum))
			})
			exec.MustCall1(float32(0)) // It makes connections.
			before := written(t)
			exec.MustCall1(float32(0))
			return float64(written(t) - before)
		}
		whole := sent(dtypes.Float32)
		for _, dtype := range []dtypes.DType{dtypes.Float16, dtypes.BFloat16} {
			if half := sent(dtype); !(half > 0.45*whole && half < 0.55*whole) {
				t.Errorf("rank %d sends %.0f bytes of %s, and %.0f of float32", w.Rank(), half, dtype, whole)
			}
		}
	})
}

// written returns how many bytes this process has written to files and connections.
func written(t *testing.T) uint64 {
	t.Helper()
	self, err := procfs.Self()
	if err != nil {
		t.Fatal(err)
	}
	io, err := self.IO()
	if err != nil {
		t.Fatal(err)
	}
	return io.WChar
}
