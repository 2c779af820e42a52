package collective

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed/pjrt"
)

// Op is how a collective combines the values of the ranks.
type Op int

// The operations. Of bools, Min is "and", and Max is "or". On CPUs, the minimum or maximum of
// floats is NaN if one of them is, and -0 is less than 0. On GPUs, NCCL decides that for float32
// and float64.
const (
	Sum Op = iota
	Mean
	Min
	Max
)

func (o Op) String() string {
	name, ok := map[Op]string{Sum: "sum", Mean: "mean", Min: "min", Max: "max"}[o]
	if !ok {
		return "unknown operation"
	}
	return name
}

// reduction is what the program's collective does. A mean is a sum that is divided.
func (o Op) reduction() pjrt.Reduction {
	switch o {
	case Min:
		return pjrt.Min
	case Max:
		return pjrt.Max
	}
	return pjrt.Sum
}

// checkReduced panics if values of the type can't be combined.
func (g Group) checkReduced(what string, x *graph.Node, op Op) {
	what += " (" + op.String() + ")"
	g.check(what, x)
	switch {
	case op < Sum || op > Max:
		g.refuse(what, x, "use Sum, Mean, Min or Max")
	case x.DType() == dtypes.Bool && op != Min && op != Max:
		g.refuse(what, x, "bools have none: use Min (and) or Max (or), or convert it to int32")
	case op == Mean && !x.DType().IsFloat():
		g.refuse(what, x, "the mean of integers is not one: convert it to a float first")
	}
}

// divided returns the mean of which sum is the sum, or sum for other operations.
func (g Group) divided(sum *graph.Node, op Op) *graph.Node {
	if op != Mean {
		return sum
	}
	return graph.MulScalar(sum, 1/float64(g.size))
}

// combined combines the rows of x, one for each rank, computed as float32.
func (g Group) combined(rows *graph.Node, op Op) *graph.Node {
	wide := graph.ConvertDType(rows, dtypes.Float32)
	if op == Min || op == Max {
		return graph.ConvertDType(extreme(wide, op), rows.DType())
	}
	return graph.ConvertDType(g.divided(graph.ReduceSum(wide, 0), op), rows.DType())
}

// extreme returns the minimum or maximum of the rows. It doesn't leave NaN and -0 to XLA, which may
// ignore them on CPUs.
func extreme(rows *graph.Node, op Op) *graph.Node {
	none := graph.ZerosLike(rows)
	number, preferred, hasSign := graph.ReduceMin(rows, 0), math.Copysign(0, -1), graph.LessThan(graph.Reciprocal(rows), none)
	if op == Max {
		number, preferred, hasSign = graph.ReduceMax(rows, 0), 0, graph.GreaterThan(graph.Reciprocal(rows), none)
	}
	constant := func(x float64) *graph.Node {
		return graph.BroadcastToShape(graph.Const(rows.Graph(), float32(x)), number.Shape())
	}
	zero := graph.Where(graph.LogicalAny(graph.LogicalAnd(graph.Equal(rows, none), hasSign), 0), constant(preferred), constant(-preferred))
	number = graph.Where(graph.Equal(number, graph.ZerosLike(number)), zero, number)
	return graph.Where(graph.LogicalAny(graph.NotEqual(rows, rows), 0), constant(math.NaN()), number)
}
