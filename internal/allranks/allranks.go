// Package allranks lets a layer compute over the batch of all ranks without knowing them. The world
// attaches its mean to a graph, and the layers that are built in it afterwards use it.
//
//	allranks.Attach(g, world.mean)        // in package distributed
//	if mean := allranks.Mean(g); mean != nil {
//		m = mean(m)                       // in a layer
//	}
//
// It has no collective of its own, and no gradients: a layer that uses the mean has its own.
package allranks

import "github.com/gomlx/gomlx/core/graph"

// MeanFn is a graph-building function that returns the mean of x over the ranks, with x's shape.
// All ranks must call it equally often and in the same order.
type MeanFn func(x *graph.Node) *graph.Node

type key struct{}

// Attach makes the layers that are built in g from now on use mean.
func Attach(g *graph.Graph, mean MeanFn) { g.AttachState(key{}, mean) }

// Mean returns what was attached to g; nil if nothing was.
func Mean(g *graph.Graph) MeanFn {
	mean, _ := g.State(key{}).(MeanFn)
	return mean
}
