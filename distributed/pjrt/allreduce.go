package pjrt

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

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

// AllReduceSum returns the sum of x over all ranks, with x's shape. Every rank must build the same
// collectives in the same order.
//
// x must be float32, float64, int32, int64 or of half precision, which is summed as float32.
// AllReduceSum is a graph-building function: it panics on other types. It also panics if the
// program would not compute the sum: the backend must be one of the plugin that RegisterAllReduce
// has prepared.
func AllReduceSum(x *graph.Node) *graph.Node {
	if sum := halfAsFloat32(x, AllReduceSum); sum != nil {
		return sum
	}
	return allReduce(x)
}

// AllReduceMean returns the mean of x over all ranks. Half-precision values are summed and divided
// as float32, because their sum may be too large for their type.
func AllReduceMean(x *graph.Node) *graph.Node {
	if mean := halfAsFloat32(x, AllReduceMean); mean != nil {
		return mean
	}
	sum := allReduce(x)
	return graph.MulScalar(sum, 1/float64(registeredRanks()))
}

// halfAsFloat32 applies f to x as float32 and converts the result to x's type. It returns nil if x
// is not of half precision.
func halfAsFloat32(x *graph.Node, f func(*graph.Node) *graph.Node) *graph.Node {
	if !x.DType().IsHalfPrecision() {
		return nil
	}
	return graph.ConvertDType(f(graph.ConvertDType(x, dtypes.Float32)), x.DType())
}

// allReduce adds a placeholder to the graph, after checking that it would work.
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

// place adds a placeholder to the graph.
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

// firstElement returns a scalar that depends on x.
func firstElement(x *graph.Node) *graph.Node {
	flat := graph.Reshape(x, x.Shape().Size())
	return graph.Reshape(graph.Slice(flat, graph.AxisRange(0, 1)))
}
