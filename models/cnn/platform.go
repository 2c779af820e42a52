package cnn

import (
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// fast reports whether x is computed by XLA on a CPU, with full precision: where the lowerings of
// this package pay.
func fast(x *graph.Node) bool {
	return (x.DType() == dtypes.Float32 || x.DType() == dtypes.Float64) && onCPU(x.Graph().Backend())
}

// onCPU reports whether a backend is XLA on CPUs.
func onCPU(backend compute.Backend) bool {
	return backend.Name() == "xla" && strings.Contains(strings.ToLower(backend.DeviceDescription(0)), "cpu")
}
