package pjrt

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/internal/plural"
)

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
	reduceScatter.check(x)
	ranks, shape := registeredRanks(), x.Shape()
	if shape.Rank() == 0 || shape.Dimensions[0]%ranks != 0 {
		panic(fmt.Errorf("pjrt: reduce-scatter of %s over %s: its first axis must be a multiple of the number of ranks: pad it", shape, plural.Of(ranks, "rank")))
	}
	dimensions, size := slices.Clone(shape.Dimensions), shape.Size()/ranks
	dimensions[0] /= ranks
	if size == 0 {
		return graph.Reshape(x, dimensions...)
	}
	part := reduceScatter.place(graph.Reshape(x, shape.Size()), func(x *graph.Node) *graph.Node {
		return graph.Slice(x, graph.AxisRange(0, size))
	})
	return graph.Reshape(part, dimensions...)
}

// ReduceScatterMean is like ReduceScatterSum, with the mean over all ranks. Half-precision values
// are summed and divided as float32.
func ReduceScatterMean(x *graph.Node) *graph.Node {
	if mean := halfAsFloat32(x, ReduceScatterMean); mean != nil {
		return mean
	}
	return overRanks(ReduceScatterSum(x))
}
