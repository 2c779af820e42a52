package collective_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed"
	"gonbatch/distributed/collective"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
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
// ranks call, and no rank gets past the next barrier.
func TestMismatches(t *testing.T) {
	const nameVariable = "TEST_MISMATCH"
	if name := os.Getenv(nameVariable); name != "" {
		runMismatch(t, name)
		return
	}
	launchers := []ranktest.Launcher{ranktest.Torchrun, ranktest.MPICH, ranktest.OpenMPI}
	for i, name := range append(slices.Sorted(maps.Keys(mismatches)), sameBefore, onHost) {
		first := i % len(launchers)
		for _, launcher := range tier.Fewer(slices.Concat(launchers[first:], launchers[:first]), 1) {
			t.Run(name+" "+launcher.Name, func(t *testing.T) {
				out, err := ranktest.Start(t, launcher, 4, []string{nameVariable + "=" + name})
				if err == nil || strings.Contains(out, passed) || !strings.Contains(out, "the ranks disagree: rank 2") {
					t.Errorf("%v:\n%s", err, out)
				}
			})
		}
	}
}

// passed is what a rank says if it gets past the barrier.
const passed = "the ranks have met again"

// sameBefore is a mismatch of ranks that have run both programs before, in the same order. onHost
// is one outside of programs.
const sameBefore, onHost = "same before", "on the host"

func runMismatch(t *testing.T, name string) {
	t.Helper()
	w := open(t)
	var err error
	switch {
	case name == onHost:
		_, err = w.AllGather(nil)
		if err == nil && w.Rank() == 2 {
			err = w.AllReduceSum([]float64{1})
		} else if err == nil {
			err = w.AllReduceSum([]float64{1, 2})
		}
	case name == sameBefore:
		err = runSameBefore(w)
	case w.Rank() == 2:
		err = runOnce(w, mismatches[name].odd)
	default:
		err = runOnce(w, mismatches[name].most)
	}
	if err == nil {
		err = w.Barrier()
	}
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(passed)
}

// runOnce builds a program and runs it.
func runOnce(w *distributed.World, build func(w *distributed.World, x *graph.Node) *graph.Node) error {
	exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) *graph.Node { return build(w, x) })
	_, err := exec.Call1([]float32{float32(w.Rank())})
	return err
}

// runSameBefore runs two programs several times, and at last in another order on rank 2.
func runSameBefore(w *distributed.World) error {
	programs := []func(w *distributed.World, x *graph.Node) *graph.Node{reduced(collective.Sum, dtypes.Float32, 6), reduced(collective.Sum, dtypes.Int32, 6)}
	for i := range 9 {
		if i == 8 && w.Rank() == 2 {
			i++
		}
		if err := runOnce(w, programs[i%2]); err != nil {
			return err
		}
	}
	return nil
}
