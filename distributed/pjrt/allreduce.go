package pjrt

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// AllReduceSum returns the sum of x over all ranks, with x's shape. Every rank must build the same
// collectives in the same order.
//
// x must be float32, float64, int32, int64 or of half precision, which travels and is summed as
// float32. (Package collective's AllReduce and ReduceScatter send it as it is, in half the bytes.)
// AllReduceSum is a graph-building function: it panics on other types. It also panics if the
// program would not compute the sum: the backend must be one of the plugin that RegisterTransport
// has prepared.
func AllReduceSum(x *graph.Node) *graph.Node {
	if sum := halfAsFloat32(x, AllReduceSum); sum != nil {
		return sum
	}
	return Collective{}.AllReduce(x)
}

// AllReduceMean returns the mean of x over all ranks. Half-precision values are summed and divided
// as float32, because their sum may be too large for their type.
func AllReduceMean(x *graph.Node) *graph.Node {
	if mean := halfAsFloat32(x, AllReduceMean); mean != nil {
		return mean
	}
	return overRanks(AllReduceSum(x))
}

// overRanks divides a sum by the number of ranks.
func overRanks(sum *graph.Node) *graph.Node {
	return graph.MulScalar(sum, 1/float64(registeredRanks()))
}

// halfAsFloat32 applies f to x as float32 and converts the result to x's type. It returns nil if x
// is not of half precision.
func halfAsFloat32(x *graph.Node, f func(*graph.Node) *graph.Node) *graph.Node {
	if !x.DType().IsHalfPrecision() {
		return nil
	}
	return graph.ConvertDType(f(graph.ConvertDType(x, dtypes.Float32)), x.DType())
}
