package pjrt

import (
	"errors"

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

// ReduceScatterSum adds up x over all ranks, and returns this rank's part of the sum: x is cut
// along its first axis into equal parts, one for each rank, in order of rank. Of x with the shape
// [6, 4], each of 2 ranks gets [3, 4]. AllGather puts the parts together again.
//
// The first axis must be a multiple of the number of ranks. ReduceScatterSum is a graph-building
// function with AllReduceSum's types and conditions.
func ReduceScatterSum(x *graph.Node) *graph.Node {
	if part := halfAsFloat32(x, ReduceScatterSum); part != nil {
		return part
	}
	return Collective{}.ReduceScatter(x)
}

// ReduceScatterMean is like ReduceScatterSum, with the mean over all ranks. Half-precision values
// are summed and divided as float32.
func ReduceScatterMean(x *graph.Node) *graph.Node {
	if mean := halfAsFloat32(x, ReduceScatterMean); mean != nil {
		return mean
	}
	return overRanks(ReduceScatterSum(x))
}

// AllGather returns the values of x of all ranks, in order of rank, one after the other along the
// first axis: of x with the shape [3, 4], 2 ranks gather [6, 4]. Of scalars, it returns a vector.
// x has the same shape on all ranks, and one of the types of AllReduceSum. Half precision is
// transferred as it is.
//
// AllGather is a graph-building function with AllReduceSum's conditions.
func AllGather(x *graph.Node) *graph.Node { return Collective{}.AllGather(x) }

// AllGatherInPlace returns the values of all ranks, in order of rank, one after the other along the
// first axis of x, which already has this rank's in their place. What x has in the places of the
// other ranks doesn't matter. The result has the memory of x.
//
// The first axis must be a multiple of the number of ranks. AllGatherInPlace is a graph-building
// function with AllGather's types and conditions. XLA's own collectives have nothing like it: it
// panics if Overlaps.
func AllGatherInPlace(x *graph.Node) *graph.Node {
	if Overlaps() {
		panic(errors.New("pjrt: XLA's own collectives have no all-gather in place: use AllGather"))
	}
	d := does{op: allGather, part: inPlace}
	d.cut(x)
	if x.Shape().Size() == 0 {
		return x
	}
	return graph.Reshape(d.place(graph.Reshape(x, x.Shape().Size()), graph.Identity), x.Shape().Dimensions...)
}
