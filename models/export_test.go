package models

import (
	"github.com/gomlx/gomlx/core/graph"
)

// Rotated returns x, [n, size], with row p turned as the query or key at place p of a GPT.
func Rotated(x *graph.Node) *graph.Node {
	return rotation(x.Graph(), x.DType(), x.Shape().Dimensions[0], x.Shape().Dimensions[1]).encode(x)
}

// Parts divides x, [batch, n, parts, heads, size].
var Parts = parts
