package collective_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed"
	"gonbatch/distributed/collective"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/machine"
)

// hugeMemory is what TestHuge needs, in bytes.
const hugeMemory = 8 << 30

// TestHuge: values of more than 2^31 bytes, which MPI can't count, and whose bytes no 32-bit number
// has.
func TestHuge(t *testing.T) {
	if !ranktest.InRank() {
		if free := availableMemory(t); free < hugeMemory {
			machine.Lacks(t, fmt.Sprintf("%d MiB of memory are available, and two ranks need %d", free>>20, hugeMemory>>20))
		}
	}
	onRanks(t, []int{2}, false, func(t *testing.T, w *distributed.World, _ *rand.Rand) {
		all := collective.Over(w)
		checkHuge(t, w, dtypes.Float32, rows, 0.5, func(x *graph.Node) *graph.Node { return all.AllReduce(x, collective.Mean) })
		checkHuge(t, w, dtypes.Float32, rows, 1, func(x *graph.Node) *graph.Node { return all.Broadcast(x, 1) })
		half := func(of func(x *graph.Node) *graph.Node) func(x *graph.Node) *graph.Node {
			return func(x *graph.Node) *graph.Node { // Half of the result is rank 1's.
				y := of(x)
				return graph.Slice(y, graph.AxisRange(y.Shape().Dimensions[0]/2))
			}
		}
		checkHuge(t, w, dtypes.BFloat16, rows, 1, half(all.AllGather))
	})
}

// A float32 value of this shape, and a bfloat16 value of twice as many rows, have more than 2^31
// bytes.
const rows, columns = 1<<22 + 1, 128

// checkHuge checks a collective of a value that is made in the program, and whose elements differ
// by column and rank. The result must be that of a rank, or between two.
func checkHuge(t *testing.T, w *distributed.World, dtype dtypes.DType, rows int, of float64, collect func(x *graph.Node) *graph.Node) {
	t.Helper()
	exec := graph.MustNewExec(w.Backend(), func(rank *graph.Node) []*graph.Node {
		value := func(rank *graph.Node, rows int) *graph.Node {
			pattern := graph.Iota(rank.Graph(), shapes.Make(dtype, 1, columns), 1)
			return graph.BroadcastToDims(graph.Add(pattern, graph.ConvertDType(rank, dtype)), rows, columns)
		}
		y := collect(value(rank, rows))
		difference := graph.Abs(graph.Sub(y, value(graph.Const(rank.Graph(), of), y.Shape().Dimensions[0])))
		return []*graph.Node{graph.ConvertDType(graph.ReduceAllMax(difference), dtypes.Float64)}
	})
	start := time.Now()
	if got := exec.MustCall(float64(w.Rank()))[0].Value(); got != 0.0 {
		t.Errorf("%s[%d %d]: the largest difference is %v", dtype, rows, columns, got)
	}
	t.Logf("rank %d: %s[%d %d] took %v", w.Rank(), dtype, rows, columns, time.Since(start))
}

// availableMemory returns what the kernel says is available, in bytes.
func availableMemory(t *testing.T) (bytes int) {
	t.Helper()
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "MemAvailable:")
	if _, err := fmt.Sscan(after, &bytes); err != nil {
		t.Fatal(err)
	}
	return bytes << 10
}
