package collective_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed"
	"gonbatch/distributed/collective"
	"gonbatch/distributed/ranktest"
)

// TestNextWorld: after Close, programs of a new world have groups and small sums over new
// connections.
func TestNextWorld(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.Torchrun}, 4, func(t *testing.T) {
		for range 3 {
			w, err := distributed.Init()
			if err != nil {
				t.Fatal(err)
			}
			checkPairs(t, w)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// checkPairs sums over pairs of ranks, and the result over all.
func checkPairs(t *testing.T, w *distributed.World) {
	t.Helper()
	pairs, err := collective.Among(w, [][]int{{3, 0}, {1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) *graph.Node {
		return collective.Over(w).AllReduce(pairs.AllGather(x), collective.Sum)
	})
	got := tensors.MustCopyFlatData[float32](exec.MustCall1([]float32{float32(w.Rank())}))
	if len(got) != 2 || got[0] != 2*3+2*1 || got[1] != 2*0+2*2 { // Each pair's values, from both.
		t.Errorf("rank %d: %v", w.Rank(), got)
	}
}
