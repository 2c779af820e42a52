package pjrt

import (
	"github.com/gomlx/gomlx/core/graph"
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
