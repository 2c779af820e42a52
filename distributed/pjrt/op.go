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
	allGather     op = 3
	reduceScatter op = 5
)

// ops are the collectives that programs can have.
var ops = []op{allReduce, allGather, reduceScatter}

// targetPrefix begins the names of all collectives, and of nothing else.
const targetPrefix = "gonbatch_(?:all_reduce_sum|all_gather|reduce_scatter_sum)_over_"

// name is the prefix of the names of the custom call in compiled programs, and of the functions in
// a graph that it replaces.
func (o op) name() string {
	return map[op]string{allReduce: "gonbatch_all_reduce_sum", allGather: "gonbatch_all_gather", reduceScatter: "gonbatch_reduce_scatter_sum"}[o]
}

// String returns the name for people.
func (o op) String() string {
	return map[op]string{allReduce: "all-reduce", allGather: "all-gather", reduceScatter: "reduce-scatter"}[o]
}

// target returns the name of the custom call over a number of ranks. The number is part of the
// name, so that XLA refuses a program for another number.
func (o op) target(ranks int) string { return fmt.Sprintf("%s_over_%d", o.name(), ranks) }

// opOf returns the collective of a function with that name.
func opOf(function string) (op, bool) {
	for _, o := range ops {
		if strings.HasPrefix(function, o.name()+"_over_") {
			return o, true
		}
	}
	return 0, false
}

// takes reports whether values of the type can take part.
func (o op) takes(dtype dtypes.DType) bool {
	switch dtype {
	case dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Int64:
		return true
	}
	return o == allGather && dtype.IsHalfPrecision()
}

// check panics if the collective would not work.
func (o op) check(x *graph.Node) {
	if !o.takes(x.DType()) {
		panic(fmt.Errorf("pjrt: %s of %s: only float and int of 32 and 64 bits, and half precision, can take part: convert it first", o, x.Shape()))
	}
	if err := probe(x.Graph().Backend()); err != nil {
		panic(fmt.Errorf("pjrt: %s of %s: %w", o, x.Shape(), err))
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

// place adds a placeholder to the graph: a function of x whose result has the shape of the
// collective's result, which body builds.
func (o op) place(x *graph.Node, body func(x *graph.Node) *graph.Node) *graph.Node {
	g := x.Graph()
	previous, ok := g.State(order{}).(lastCollective)
	if !ok {
		previous.done = graph.ScalarZero(g, dtypes.Float32)
	}
	name := fmt.Sprintf("%s_%d", o.target(registeredRanks()), previous.count)
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
