package collective_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed"
	"gonbatch/distributed/collective"
	"gonbatch/distributed/ranktest"
)

// mismatches are programs of which rank 2 builds another one than the others.
var mismatches = map[string]struct {
	most, odd func(w *distributed.World, x *graph.Node) *graph.Node
}{
	"operation": {reduced(collective.Sum, dtypes.Float32, 5), reduced(collective.Max, dtypes.Float32, 5)},
	"type":      {reduced(collective.Sum, dtypes.Float32, 6), reduced(collective.Sum, dtypes.Float64, 3)},
	"shape":     {reduced(collective.Sum, dtypes.Float32, 5), reduced(collective.Sum, dtypes.Float32, 100_000)},
	"kind": {reduced(collective.Sum, dtypes.Float32, 5), func(w *distributed.World, x *graph.Node) *graph.Node {
		return collective.Over(w).AllGather(x)
	}},
	"root":   {broadcastFrom(0), broadcastFrom(1)},
	"groups": {gatheredIn([][]int{{0, 1}, {2, 3}}), gatheredIn([][]int{{0, 2}, {1, 3}})},
	"all":    {gatheredIn([][]int{{0, 1}, {2, 3}}), gatheredIn([][]int{{0, 1, 2, 3}})},
}

func reduced(op collective.Op, dtype dtypes.DType, size int) func(w *distributed.World, x *graph.Node) *graph.Node {
	return func(w *distributed.World, x *graph.Node) *graph.Node {
		value := graph.BroadcastToDims(graph.ConvertDType(graph.ReduceAllSum(x), dtype), size)
		return collective.Over(w).AllReduce(value, op)
	}
}

func broadcastFrom(root int) func(w *distributed.World, x *graph.Node) *graph.Node {
	return func(w *distributed.World, x *graph.Node) *graph.Node { return collective.Over(w).Broadcast(x, root) }
}

func gatheredIn(groups [][]int) func(w *distributed.World, x *graph.Node) *graph.Node {
	return func(w *distributed.World, x *graph.Node) *graph.Node {
		g, err := collective.Among(w, groups)
		if err != nil {
			panic(err)
		}
		return g.AllGather(x)
	}
}

// TestMismatches: if a rank builds another program, the job ends with an error that says what the
// ranks call. Over TCP, no rank gets past the next barrier; MPI doesn't compare.
func TestMismatches(t *testing.T) {
	const nameVariable = "TEST_MISMATCH"
	if name := os.Getenv(nameVariable); name != "" {
		runMismatch(t, name)
		return
	}
	for name := range mismatches {
		launchers := []ranktest.Launcher{ranktest.Torchrun, ranktest.MPICH}
		if name == "groups" {
			launchers = append(launchers, ranktest.OpenMPI)
		}
		for _, launcher := range launchers {
			t.Run(name+" "+launcher.Name, func(t *testing.T) {
				out, err := ranktest.Start(t, launcher, 4, []string{nameVariable + "=" + name})
				wrong := launcher.Name == ranktest.Torchrun.Name && strings.Contains(out, passed)
				if err == nil || wrong || !strings.Contains(out, "the ranks disagree: rank 2") {
					t.Errorf("%v:\n%s", err, out)
				}
			})
		}
	}
}

// passed is what a rank says if it gets past the barrier.
const passed = "the ranks have met again"

func runMismatch(t *testing.T, name string) {
	t.Helper()
	w, build := open(t), mismatches[name].most
	if w.Rank() == 2 {
		build = mismatches[name].odd
	}
	exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) *graph.Node { return build(w, x) })
	if _, err := exec.Call1([]float32{float32(w.Rank())}); err != nil {
		t.Fatal(err)
	}
	if err := w.Barrier(); err != nil {
		t.Fatal(err)
	}
	fmt.Println(passed)
}
