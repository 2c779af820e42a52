package pjrt_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed/onednn"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
)

// TestFlights: whatever fails first in a program is what all of its threads report, and the next
// program does not. The C compiler's race detector watches them, where it works.
func TestFlights(t *testing.T) {
	runThreads(t, "flight.c", "", "flight.c", "trace.c")
}

// TestFirstFailure: if a kernel fails while sums travel, that is the error of the program, and
// the next program runs.
func TestFirstFailure(t *testing.T) {
	everyTransport(t, 1, func(t *testing.T, _ int, backend compute.Backend) {
		library, err := onednn.Open([]string{ranktest.OneDNN(t)})
		if err != nil {
			t.Fatal(err)
		}
		// As a product, a convolution refuses its form.
		if err := pjrt.RegisterKernels("cpu", pjrt.Kernels{Convolution: library.Convolution(), Product: library.Convolution()}); err != nil {
			t.Fatal(err)
		}
		pjrt.SetMinProduct(1)
		pjrt.Split(true)
		defer pjrt.Split(false)
		failing := graph.MustNewExec(backend, func(x *graph.Node) []*graph.Node {
			first, second := pjrt.StartAllReduceMean(x), pjrt.StartAllReduceMean(graph.ConvertDType(x, dtypes.Float64))
			a := graph.Reshape(x, 1<<9, 1<<9)
			return []*graph.Node{graph.Dot(a, graph.AddScalar(a, 1)).Product(), first(), second()}
		})
		sums := graph.MustNewExec(backend, func(x *graph.Node) *graph.Node { return pjrt.StartAllReduceMean(x)() })
		x := make([]float32, 1<<18)
		for i := range tier.Tries(30, 8) {
			_, err := failing.Call(x)
			if want := "gonbatch: a convolution of 7 numbers, not 20"; err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("run %d: %v, want %q", i, err, want)
			}
			x[0] = float32(i)
			if out, err := sums.Call(x); err != nil || flat(t, out[0])[0] != float64(i) {
				t.Fatalf("after run %d: %v, %v", i, out, err)
			}
		}
	})
}
