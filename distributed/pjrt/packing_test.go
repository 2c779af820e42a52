package pjrt_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed/pjrt"
)

// TestRefusedOptions: with a plugin that doesn't know an option, or its value, programs are
// compiled without it, and with the others.
func TestRefusedOptions(t *testing.T) {
	everyTransport(t, 1, func(t *testing.T, _ int, backend compute.Backend) {
		before := len(pjrt.Plainly())
		if before == 0 {
			t.Error("no option is set")
		}
		pjrt.AddPacking(t, "xla_cpu_no_such_option", false)
		pjrt.AddPacking(t, "xla_cpu_max_isa", int64(3))
		for i := range 3 {
			exec := graph.MustNewExec(backend, func(x *graph.Node) *graph.Node { return graph.AddScalar(x, i+1) })
			if got := exec.MustCall1(float32(2)).Value().(float32); got != float32(i+3) {
				t.Errorf("program %d: %v", i, got)
			}
		}
		if after := len(pjrt.Plainly()); after != before {
			t.Errorf("%d bytes of options, and %d before there were unknown ones", after, before)
		}
	})
}
