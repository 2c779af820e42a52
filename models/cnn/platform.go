package cnn

import (
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/internal/forecast"
)

// fast reports whether x is computed by XLA on a CPU, with full precision: where the lowerings of
// this package pay.
func fast(x *graph.Node) bool {
	return (x.DType() == dtypes.Float32 || x.DType() == dtypes.Float64) && onCPU(x.Graph().Backend())
}

// onCPU reports whether a backend is XLA on CPUs, and the graph is for them: a forecast builds the
// graph of a GPU.
func onCPU(backend compute.Backend) bool {
	return !forecast.ForGPU.Load() && backend.Name() == "xla" && strings.Contains(strings.ToLower(backend.DeviceDescription(0)), "cpu")
}
