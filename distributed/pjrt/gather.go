package pjrt

import (
	"errors"

	"github.com/gomlx/gomlx/core/graph"
)

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
