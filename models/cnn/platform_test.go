package cnn

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/internal/layerhooks"
	"gonbatch/models/modelstest"
)

// described is a backend with another name or device.
type described struct {
	compute.Backend
	name, device string
}

func (d described) Name() string                               { return d.name }
func (d described) DeviceDescription(compute.DeviceNum) string { return d.device }

// TestOnCPU: the faster algorithms are only for XLA's CPU device. The real plugin provides its
// description.
func TestOnCPU(t *testing.T) {
	tests := []struct {
		backend compute.Backend
		want    bool
	}{
		{modelstest.Backend(t), true},
		{described{name: "xla", device: "StreamExecutorGpuDevice(device_kind=NVIDIA H100, id=0) [processId=0]"}, false},
		{described{name: "go", device: "CPU"}, false},
	}
	for _, tc := range tests {
		if got := onCPU(tc.backend); got != tc.want {
			t.Errorf("%s, %s: on a CPU is %t, want %t", tc.backend.Name(), tc.backend.DeviceDescription(0), got, tc.want)
		}
	}
}

// TestHalfPrecisionIsPlain: 16-bit numbers are left to GoMLX, because long sums would lose digits.
func TestHalfPrecisionIsPlain(t *testing.T) {
	for dtype, want := range map[dtypes.DType]bool{dtypes.Float32: true, dtypes.Float64: true, dtypes.BFloat16: false, dtypes.Float16: false} {
		g := graph.NewGraph(modelstest.Backend(t), dtype.String())
		if got := fast(graph.Ones(g, shapes.Make(dtype, 2))); got != want {
			t.Errorf("%s: the faster algorithms are used: %t, want %t", dtype, got, want)
		}
	}
}

// TestByLibrary: convolutions that a library computes stay whole, and the others are computed as if
// there were none.
func TestByLibrary(t *testing.T) {
	t.Cleanup(func() { layerhooks.SetConvolves(nil) })
	tests := []struct {
		channels              int
		byLibrary, withoutOne string
	}{
		{1, "whole", "taps"},
		{2, "whole", "whole"},
		{128, "whole", "whole"},
	}
	want := layerhooks.Convolution{Batch: 8, Height: 8, Width: 8, Out: 256, Rows: 3, Columns: 3, Stride: [2]int{1, 1}, Padding: [2][2]int{{1, 1}, {1, 1}}}
	for _, tc := range tests {
		layerhooks.SetConvolves(nil)
		if got := algorithm(t, tc.channels); got != tc.withoutOne {
			t.Errorf("%d channels, without a library: the algorithm is %s, want %s", tc.channels, got, tc.withoutOne)
		}
		layerhooks.SetConvolves(func(c layerhooks.Convolution) bool {
			want.In = tc.channels
			if c != want {
				t.Errorf("asked for %+v, want %+v", c, want)
			}
			return c.In < 256
		})
		if got := algorithm(t, tc.channels); got != tc.byLibrary {
			t.Errorf("%d channels, by a library: the algorithm is %s, want %s", tc.channels, got, tc.byLibrary)
		}
	}
}

// algorithm returns how a 3x3 convolution from a number of channels to 256 is computed.
func algorithm(t *testing.T, channels int) string {
	t.Helper()
	g := graph.NewGraph(modelstest.Backend(t), "convolution")
	x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 8, 8, 8, channels))
	w := graph.Parameter(g, "w", shapes.Make(dtypes.Float32, 3, 3, channels, 256))
	y := convolution{x: x, w: w, stride: [2]int{1, 1}, padding: [2][2]int{{1, 1}, {1, 1}}}.node()
	if y.Type() == graph.NodeTypeConvGeneral {
		return "whole"
	}
	return "taps"
}
