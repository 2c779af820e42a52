package pjrt

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// order is the key of a graph's state that remembers its last collective, so that the next one can
// depend on it: XLA may run independent operations in any order, and ranks that disagree on the
// order of their collectives would mix them up or wait forever.
type order struct{}

// lastCollective is the state: how many collectives the graph has, and a scalar that only exists
// after the last of them.
type lastCollective struct {
	count int
	done  *graph.Node
}

// AllReduceSum returns the sum of x over all ranks, of the same shape. Every rank must build the
// same collectives in the same order.
//
// x is float32, float64, int32 or int64; half-precision values are summed as float32. It is a graph
// building function: it panics on other types. It panics as well where the sum would not take
// place: the backend must be one of the plugin that RegisterAllReduce has prepared.
func AllReduceSum(x *graph.Node) *graph.Node {
	if sum := halfAsFloat32(x, AllReduceSum); sum != nil {
		return sum
	}
	return allReduce(x)
}

// AllReduceMean returns the mean of x over all ranks. Half-precision values are summed and divided
// as float32: their sum may be larger than their type can hold.
func AllReduceMean(x *graph.Node) *graph.Node {
	if mean := halfAsFloat32(x, AllReduceMean); mean != nil {
		return mean
	}
	sum := allReduce(x)
	return graph.MulScalar(sum, 1/float64(registeredRanks()))
}

// halfAsFloat32 applies f to x as float32 and gives the result x's type; nil if x is not of half
// precision.
func halfAsFloat32(x *graph.Node, f func(*graph.Node) *graph.Node) *graph.Node {
	if !x.DType().IsHalfPrecision() {
		return nil
	}
	return graph.ConvertDType(f(graph.ConvertDType(x, dtypes.Float32)), x.DType())
}

// allReduce puts a placeholder into the graph, if that can work.
func allReduce(x *graph.Node) *graph.Node {
	switch x.DType() {
	case dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Int64:
	default:
		panic(fmt.Errorf("pjrt: all-reduce of %s: only float and int of 32 and 64 bits, and half precision, can be reduced", x.Shape()))
	}
	if err := probe(x.Graph().Backend()); err != nil {
		panic(fmt.Errorf("pjrt: all-reduce of %s: %w", x.Shape(), err))
	}
	if x.Shape().Size() == 0 {
		return x
	}
	return place(x)
}

// place puts a placeholder into the graph.
func place(x *graph.Node) *graph.Node {
	g := x.Graph()
	previous, ok := g.State(order{}).(lastCollective)
	if !ok {
		previous.done = graph.ScalarZero(g, dtypes.Float32)
	}
	name := fmt.Sprintf("%s_%d", target(registeredRanks()), previous.count)
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
