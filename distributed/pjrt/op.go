package pjrt

import (
	"fmt"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// op is what a collective does. The numbers are those of a transport.
type op int

const (
	allReduce     op = 1
	broadcast     op = 2
	allGather     op = 3
	reduceScatter op = 5
	allToAll      op = 6
)

// opNames are the parts of the names of functions in a graph that are replaced by collectives.
var opNames = map[op]string{allReduce: "all_reduce", broadcast: "broadcast", allGather: "all_gather", reduceScatter: "reduce_scatter", allToAll: "all_to_all"}

// String returns the name for people.
func (o op) String() string {
	return strings.ReplaceAll(opNames[o], "_", "-")
}

// reduces reports whether the collective computes with the values of several ranks.
func (o op) reduces() bool { return o == allReduce || o == reduceScatter }

// takes reports whether values of the type can take part.
func (d does) takes(dtype dtypes.DType) bool {
	switch dtype {
	case dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Int64:
		return true
	case dtypes.Uint8:
		return !d.op.reduces() || d.reduction != Sum
	}
	return !d.op.reduces() && dtype.IsHalfPrecision()
}

// check panics if the collective would not work.
func (d does) check(x *graph.Node) {
	if !d.takes(x.DType()) {
		panic(fmt.Errorf("pjrt: %s of %s: only float and int of 32 and 64 bits, and half precision, can take part: convert it first", d.op, x.Shape()))
	}
	if !x.Graph().IsMainFunc() {
		panic(fmt.Errorf("pjrt: %s of %s in %q: a collective can't be in the body of a While, an If or another function, where nothing orders it: "+
			"use it outside, on what the function takes or returns", d.op, x.Shape(), x.Graph().CurrentFunc().Name()))
	}
	if err := probe(x.Graph().Backend()); err != nil {
		panic(fmt.Errorf("pjrt: %s of %s: %w", d.op, x.Shape(), err))
	}
	if err := d.groups.Check(registeredRanks()); err != nil {
		panic(fmt.Errorf("pjrt: %s of %s: %w", d.op, x.Shape(), err))
	}
}

// order is the key of the graph state that holds the graph's last collective. The next collective
// depends on it. Otherwise XLA could run independent collectives in any order, and ranks that run
// them in different orders would mix them up or wait forever.
type order struct{}

// lastCollective is that state: the number of collectives in the graph, and a scalar that exists
// only after the last of them.
type lastCollective struct {
	count int
	done  *graph.Node
}

// collectives returns the state of a graph.
func collectives(g *graph.Graph) lastCollective {
	if last, ok := g.State(order{}).(lastCollective); ok {
		return last
	}
	return lastCollective{done: graph.ScalarZero(g, dtypes.Float32)}
}

// place adds a placeholder to the graph: a function of x whose result has the shape of the
// collective's result, which body builds.
func (d does) place(x *graph.Node, body func(x *graph.Node) *graph.Node) *graph.Node {
	g, previous := x.Graph(), collectives(x.Graph())
	name := d.register(previous.count)
	after := previous.done
	function := graph.NewFunction(g, name, func(g *graph.Graph) []*graph.Node {
		value := graph.Parameter(g, "x", x.Shape())
		_ = graph.Parameter(g, "after", after.Shape())
		return []*graph.Node{body(value)}
	})
	result := function.Call(x, after)[0]
	g.AttachState(order{}, lastCollective{count: previous.count + 1, done: firstElement(result)})
	return result
}

// firstElement returns a scalar that depends on x.
func firstElement(x *graph.Node) *graph.Node {
	flat := graph.Reshape(x, x.Shape().Size())
	return graph.Reshape(graph.Slice(flat, graph.AxisRange(0, 1)))
}

// After makes the next collective of the graph wait until the program has computed x.
func After(x *graph.Node) {
	last := collectives(x.Graph())
	last.done = graph.Add(last.done, graph.ConvertDType(firstElement(x), last.done.DType()))
	x.Graph().AttachState(order{}, last)
}
