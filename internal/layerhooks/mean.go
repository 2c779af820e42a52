// Package layerhooks passes information about a training to the layers of its model, which can't
// depend on it: a layer must also work without a training. Packages distributed and trainer attach
// to a graph what the layers built in it afterwards may ask for:
//
//	layerhooks.AttachMean(g, world.mean)              // distributed: the mean over all ranks
//	layerhooks.AttachPrecision(g, precision)          // trainer: the types to compute in
//	layerhooks.SetConvolves(library.computes)         // distributed: for the whole process
//
//	if mean := layerhooks.Mean(g); mean != nil {      // in a layer
//		m = mean(m)
//	}
package layerhooks

import "github.com/gomlx/gomlx/core/graph"

// MeanFn is a graph-building function that returns the mean of x over the ranks, with x's shape.
// All ranks must call it equally often and in the same order.
type MeanFn func(x *graph.Node) *graph.Node

type meanKey struct{}

// attached is the state of a graph.
type attached struct {
	mean MeanFn
	uses int
}

// AttachMean makes the layers that are built in g from now on use mean. A graph of several models,
// such as a GAN's, may attach it for each: MeanUses counts the layers of all.
func AttachMean(g *graph.Graph, mean MeanFn) {
	if a, ok := g.State(meanKey{}).(*attached); ok {
		a.mean = mean
		return
	}
	g.AttachState(meanKey{}, &attached{mean: mean})
}

// Mean returns the mean that was attached to g; nil if none was. A layer calls it once. No
// gradient flows through the mean: the layer defines its own.
func Mean(g *graph.Graph) MeanFn {
	a, ok := g.State(meanKey{}).(*attached)
	if !ok {
		return nil
	}
	a.uses++
	return a.mean
}

// MeanUses returns how many layers in g have called Mean, and whether a mean was attached.
func MeanUses(g *graph.Graph) (uses int, ok bool) {
	a, ok := g.State(meanKey{}).(*attached)
	if !ok {
		return 0, false
	}
	return a.uses, true
}
