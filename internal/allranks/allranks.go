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

// attached is the state of a graph.
type attached struct {
	mean MeanFn
	uses int
}

// Attach makes the layers that are built in g from now on use mean. A graph of several models, such
// as a GAN's, may attach it for each: Uses counts the layers of all.
func Attach(g *graph.Graph, mean MeanFn) {
	if a, ok := g.State(key{}).(*attached); ok {
		a.mean = mean
		return
	}
	g.AttachState(key{}, &attached{mean: mean})
}

// Mean returns what was attached to g; nil if nothing was. A layer calls it once.
func Mean(g *graph.Graph) MeanFn {
	a, ok := g.State(key{}).(*attached)
	if !ok {
		return nil
	}
	a.uses++
	return a.mean
}

// Uses returns how many layers in g have called Mean, and whether a mean was attached.
func Uses(g *graph.Graph) (uses int, ok bool) {
	a, ok := g.State(key{}).(*attached)
	if !ok {
		return 0, false
	}
	return a.uses, true
}
