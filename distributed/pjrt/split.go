package pjrt

import (
	"sync/atomic"

	"gonbatch/distributed/stablehlo"

	"github.com/gomlx/gomlx/core/graph"
)

// split is whether the sums of StartAllReduceMean run while programs compute.
var split atomic.Bool

// Split makes the all-reduces of StartAllReduceMean run while the program computes, in the programs
// that are built from now on. It must be the same on all ranks. XLA's own collectives always do.
func Split(on bool) { split.Store(on) }

// Splits reports whether Split is on.
func Splits() bool { return split.Load() }

// splitBytes is the value of SetSplitBytes.
var splitBytes atomic.Int64

// SetSplitBytes sets how many bytes of gradients may travel together while programs compute, in the
// programs that are built from now on, for measurements. 0 is the default.
func SetSplitBytes(bytes int) { splitBytes.Store(int64(bytes)) }

// SplitBytes returns the value of SetSplitBytes.
func SplitBytes() int { return int(splitBytes.Load()) }

// StartAllReduceMean begins the mean of x over all ranks, and returns a function that returns it.
// What the program computes in between, it computes while the mean travels: call the function once
// all means have been started that can be.
//
// Without Split, it is AllReduceMean. That of half precision always is.
func StartAllReduceMean(x *graph.Node) (mean func() *graph.Node) {
	if !split.Load() || Overlaps() || x.DType().IsHalfPrecision() || x.Shape().IsZeroSize() {
		result := AllReduceMean(x)
		return func() *graph.Node { return result }
	}
	d := does{op: allReduce}
	d.check(x)
	started := d.half(start, x)
	return func() *graph.Node { return overRanks(d.half(finish, started)) }
}

// half adds the placeholder of a half to the graph. Its results are x, in whose memory the sum is
// computed, and a scalar that exists once that has begun or ended. The next collective, and the
// next half, depend on that.
func (d does) half(part part, x *graph.Node) *graph.Node {
	d.part = part
	g, last := x.Graph(), collectives(x.Graph())
	name := d.register(last.count)
	function := graph.NewFunction(g, name, func(g *graph.Graph) []*graph.Node {
		return []*graph.Node{graph.Parameter(g, "x", x.Shape()), graph.Parameter(g, "after", last.done.Shape())}
	})
	results := function.Call(x, last.done)
	g.AttachState(order{}, lastCollective{count: last.count + 1, done: results[1]})
	return results[0]
}

// halfBody returns the body of the function that replaces a placeholder of a half: a custom call
// whose first result has the memory of x.
func (p parameters) halfBody() []*stablehlo.Op {
	results := []stablehlo.Value{{Name: "%result", Type: p.results[0]}, {Name: "%done", Type: p.results[1]}}
	call := stablehlo.CustomCall(p.target(p.ranks), true, []int{0}, []stablehlo.Value{p.x, p.after}, results...)
	return []*stablehlo.Op{call, stablehlo.Return(results...)}
}
