package pjrt_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/machine"
)

// traced computes two convolutions, the gradients of one, and two products.
func traced(inputs []*graph.Node) []*graph.Node {
	x, w, a := inputs[0], inputs[1], inputs[2]
	y := graph.Convolve(x, w).NoPadding().Done()
	gradients := graph.Gradient(graph.ReduceAllSum(graph.Mul(y, y)), x, w)
	return []*graph.Node{
		graph.Convolve(x, w).PadSame().StridePerAxis(2, 1).Done(), gradients[0], gradients[1],
		graph.DotGeneral(a, []int{2}, []int{0}, a, []int{2}, []int{0}),
		graph.Dot(graph.Reshape(a, 96, 16), graph.Transpose(graph.Reshape(a, 96, 16), 0, 1)).Product(),
	}
}

// operationsOfTraced are those of one run.
var operationsOfTraced = map[string]int{
	"convolution 4x10x12x8 -> 4x5x12x16, 3x3, stride 2x1": 1, "convolution 4x10x12x8 -> 4x8x10x16, 3x3": 1,
	"gradient of images: convolution 4x10x12x8 -> 4x8x10x16, 3x3": 1, "gradient of weights: convolution 4x10x12x8 -> 4x8x10x16, 3x3": 1,
	"3 products 32x16 by 16x32": 1, "product 96x16 by 16x96": 1,
}

// TestTrace: a recording has the operations of all programs that run while it is on, also of
// several at once, but no more than it has memory for.
func TestTrace(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 1, func(t *testing.T) {
		backend, r := openKernels(t), rand.New(rand.NewPCG(5, 6))
		program := graph.MustNewExec(backend, traced)
		x, w, a := noise(r, dtypes.Float32, 4, 10, 12, 8), noise(r, dtypes.Float32, 3, 3, 8, 16), noise(r, dtypes.Float32, 3, 32, 16)
		run := func() { program.MustCall(x, w, a) }
		run() // It compiles.
		if all, lost := pjrt.StopTrace(); len(all)+lost != 0 {
			t.Errorf("%d operations are recorded without a recording", len(all)+lost)
		}
		pjrt.StartTrace(100)
		run()
		checkTrace(t, 1, 0)

		pjrt.StartTrace(1000)
		const goroutines, each = 4, 20
		var group sync.WaitGroup
		for range goroutines {
			group.Go(func() {
				for range each {
					run()
				}
			})
		}
		group.Wait()
		checkTrace(t, goroutines*each, 0)

		pjrt.StartTrace(12)
		for range 5 {
			run()
		}
		checkTrace(t, 2, 18)
	})
}

// checkTrace ends the recording and checks that it has the operations of so many runs.
func checkTrace(t *testing.T, runs, lost int) {
	t.Helper()
	all, gotLost := pjrt.StopTrace()
	got, want := map[string]int{}, map[string]int{}
	for _, o := range all {
		got[o.Name]++
		if o.Begin >= o.End || o.Thread == 0 || o.Kind != pjrt.Convolution && o.Kind != pjrt.Product {
			t.Errorf("%+v", o)
		}
	}
	for name, n := range operationsOfTraced {
		want[name] = n * runs
	}
	if !maps.Equal(got, want) || gotLost != lost {
		t.Errorf("%v and %d lost, want %v and %d", got, gotLost, want, lost)
	}
	if !slices.IsSortedFunc(all, func(a, b pjrt.Operation) int { return int(a.End - b.End) }) && runs == 1 {
		t.Error("the operations aren't in the order of their ends")
	}
}

// TestTraceOfCollectives: a recording has all collectives of a program, in the order of their
// beginnings, with what this rank gives to each.
func TestTraceOfCollectives(t *testing.T) {
	everyTransport(t, 2, func(t *testing.T, _ int, backend compute.Backend) {
		pjrt.Split(true)
		defer pjrt.Split(false)
		groups := pjrt.Collective{Reduction: pjrt.Max, Groups: pjrt.Groups{{1}, {0}}}
		program := graph.MustNewExec(backend, func(x *graph.Node) []*graph.Node {
			mean := pjrt.StartAllReduceMean(x)
			return []*graph.Node{
				pjrt.AllGather(graph.ConvertDType(x, dtypes.Float64)), pjrt.Collective{}.Broadcast(graph.ConvertDType(x, dtypes.Uint8), 1),
				groups.ReduceScatter(graph.ConvertDType(x, dtypes.Int32)), mean(),
			}
		})
		x := make([]float32, 1<<19)
		program.MustCall(x)
		pjrt.StartTrace(100)
		program.MustCall(x)
		all, lost := pjrt.StopTrace()
		slices.SortFunc(all, func(a, b pjrt.Operation) int { return cmp.Compare(a.Begin, b.Begin) })
		var got []string
		for _, o := range all {
			name := fmt.Sprint(o.Kind, " ", o.Name)
			if o.Grouped {
				name += ", in groups"
			}
			got = append(got, name)
		}
		got = slices.DeleteFunc(got, func(name string) bool { return name == fmt.Sprint(pjrt.WaitForSum, " ", everySum) }) // It may have arrived.
		want := []string{
			"5 start all-reduce 2.0 MiB float32, sum", "7 all-reduce 2.0 MiB float32, sum",
			"4 all-gather 4.0 MiB float64", "4 broadcast 512.0 KiB uint8", "4 reduce-scatter 2.0 MiB int32, max, in groups",
			"6 wait for all-reduce 2.0 MiB float32, sum",
		}
		if !slices.Equal(got, want) || lost != 0 {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// everySum is the wait of another collective.
const everySum = "wait for all travelling sums"

// TestTraceInThreads: threads record operations while recordings begin and end. The C compiler's
// race detector watches them.
func TestTraceInThreads(t *testing.T) { runThreads(t, "trace.c", "threads", "trace.c") }

// BenchmarkTrace shows what the possibility of a recording costs an operation.
func BenchmarkTrace(b *testing.B) {
	for b.Loop() {
		out, err := runC(b, "trace.c", "cost", "-O2", "trace.c")
		if err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		b.Log(out)
	}
}

// runThreads runs a part of a program of testdata under the race detector.
func runThreads(t *testing.T, program, part string, sources ...string) {
	t.Helper()
	out, err := runC(t, program, part, append(sources, "-fsanitize=thread")...)
	if err != nil && (strings.Contains(out, "unexpected memory mapping") || strings.Contains(out, "cannot find")) {
		if out, err := runC(t, program, part, sources...); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		machine.Lacks(t, "the C compiler's race detector does not start: "+out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// runC compiles a program of testdata with those arguments, and runs a part of it.
func runC(t testing.TB, source, part string, args ...string) (string, error) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	args = append(args, "-g", "-Wall", "-Werror", "-o", program, filepath.Join("testdata", source), "-lpthread")
	if out, err := exec.CommandContext(t.Context(), "cc", args...).CombinedOutput(); err != nil {
		return string(out), err
	}
	out, err := exec.CommandContext(t.Context(), program, part).CombinedOutput()
	return string(out), err
}
