package pjrt

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// order is the key of a graph's state that remembers its last collective, so that the next one can depend on it: XLA may run
// independent operations in any order, and ranks that disagree on the order of their collectives would mix them up or wait for ever.
type order struct{}

// lastCollective is the state: how many collectives the graph has, and a scalar that only exists after the last of them.
type lastCollective struct {
	count int
	done  *graph.Node
}

// AllReduceSum returns the sum of x over all ranks, of the same shape. Every rank must build the same collectives in the same order.
//
// x is float32, float64, int32 or int64; half-precision values travel as float32. It is a graph building function: it
// panics on other types. A plugin prepared by RegisterAllReduce is needed to run the graph; in any other the sum is x itself.
func AllReduceSum(x *graph.Node) *graph.Node {
	switch x.DType() {
	case dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Int64:
	case dtypes.Float16, dtypes.BFloat16:
		return graph.ConvertDType(AllReduceSum(graph.ConvertDType(x, dtypes.Float32)), x.DType())
	default:
		panic(fmt.Errorf("pjrt: all-reduce of %s: only float and int of 32 and 64 bits, and half precision, can be reduced", x.Shape()))
	}
	g := x.Graph()
	previous, ok := g.State(order{}).(lastCollective)
	if !ok {
		previous.done = graph.ScalarZero(g, dtypes.Float32)
	}
	name := fmt.Sprintf("%s_%d", targetName, previous.count)
	after := previous.done
	function := graph.NewFunction(g, name, func(g *graph.Graph) []*graph.Node {
		value := graph.Parameter(g, "x", x.Shape())
		_ = graph.Parameter(g, "after", after.Shape())
		return []*graph.Node{graph.Identity(value)}
	})
	sum := function.Call(x, after)[0]
	g.AttachState(order{}, lastCollective{count: previous.count + 1, done: firstElement(sum)})
	return sum
}

// firstElement is a scalar that can't be known before x is.
func firstElement(x *graph.Node) *graph.Node {
	flat := graph.Reshape(x, x.Shape().Size())
	return graph.Reshape(graph.Slice(flat, graph.AxisRange(0, 1)))
}
