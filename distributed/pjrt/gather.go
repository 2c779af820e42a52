package pjrt

import (
	"slices"

	"github.com/gomlx/gomlx/core/graph"
)

// AllGather returns the values of x of all ranks, in order of rank, one after the other along the
// first axis: of x with the shape [3, 4], 2 ranks gather [6, 4]. Of scalars, it returns a vector.
// x has the same shape on all ranks, and one of the types of AllReduceSum. Half precision is
// transferred as it is.
//
// AllGather is a graph-building function with AllReduceSum's conditions.
func AllGather(x *graph.Node) *graph.Node {
	allGather.check(x)
	ranks, shape := registeredRanks(), x.Shape()
	dimensions := []int{ranks}
	if shape.Rank() > 0 {
		dimensions = slices.Clone(shape.Dimensions)
		dimensions[0] *= ranks
	}
	if shape.Size() == 0 {
		return graph.Reshape(x, dimensions...)
	}
	all := allGather.place(graph.Reshape(x, shape.Size()), func(x *graph.Node) *graph.Node {
		return graph.Concatenate(slices.Repeat([]*graph.Node{x}, ranks), 0)
	})
	return graph.Reshape(all, dimensions...)
}
