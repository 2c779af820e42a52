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

// TestHalfTravels: values of half precision travel as they are: all ranks together send no more
// bytes than these have, to each rank that needs them.
func TestHalfTravels(t *testing.T) {
	overTCP := ranktest.OpenMPI.With(" over TCP", "OMPI_MCA_pml=ob1", "OMPI_MCA_btl=tcp,self") // What travels in shared memory can't be counted.
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.Torchrun, overTCP}, 3, func(t *testing.T) {
		w := open(t)
		const size = 3 << 17
		for _, test := range []struct {
			step
			dtype dtypes.DType
			times float64 // Each value is sent that often.
		}{
			{step{kind: "all-reduce"}, dtypes.BFloat16, 4}, {step{kind: "all-reduce", op: collective.Max}, dtypes.Float16, 4}, {step{kind: "reduce-scatter"}, dtypes.BFloat16, 2},
			{step{kind: "all-to-all"}, dtypes.BFloat16, 2}, {step{kind: "broadcast", root: 1}, dtypes.BFloat16, 2}, {step{kind: "all-gather"}, dtypes.BFloat16, 6},
		} {
			exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) *graph.Node {
				half := graph.ConvertDType(graph.IotaFull(x.Graph(), shapes.Make(dtypes.Float32, size)), test.dtype)
				return graph.ReduceAllSum(test.build(w, half))
			})
			exec.MustCall1(float32(0)) // It makes connections.
			before := written(t)
			exec.MustCall1(float32(0))
			sent := []float64{float64(written(t) - before)}
			if err := w.AllReduceSum(sent); err != nil {
				t.Fatal(err)
			}
			if want := test.times * 2 * size; !(sent[0] > 0.99*want && sent[0] < 1.05*want) {
				t.Errorf("%s of %s: all ranks send %.0f bytes, want %.0f", test.kind, test.dtype, sent[0], want)
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
