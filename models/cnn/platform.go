package cnn

import (
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/internal/forecast"
)

// fast reports whether XLA computes x on a CPU, with full precision. Only then are the algorithms
// of this package faster.
func fast(x *graph.Node) bool {
	return (x.DType() == dtypes.Float32 || x.DType() == dtypes.Float64) && onCPU(x.Graph().Backend())
}

// onCPU reports whether the backend is XLA on CPUs and the graph is for it: a forecast builds a
// GPU's graph.
func onCPU(backend compute.Backend) bool {
	return !forecast.ForGPU.Load() && backend.Name() == "xla" && strings.Contains(strings.ToLower(backend.DeviceDescription(0)), "cpu")
}
