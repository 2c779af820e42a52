package pjrt

import (
	"github.com/gomlx/gomlx/core/graph"
)

// AllGather returns the values of x of all ranks, in order of rank, one after the other along the
// first axis: of x with the shape [3, 4], 2 ranks gather [6, 4]. Of scalars, it returns a vector.
// x has the same shape on all ranks, and one of the types of AllReduceSum. Half precision is
// transferred as it is.
//
// AllGather is a graph-building function with AllReduceSum's conditions.
func AllGather(x *graph.Node) *graph.Node { return Collective{}.AllGather(x) }
