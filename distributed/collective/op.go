package collective

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed/pjrt"
)

// Op is how a collective combines the values of the ranks.
type Op int

// The operations. The minimum or maximum of floats is NaN if one of them is. Of bools, Min is "and",
// and Max is "or".
const (
	Sum Op = iota
	Mean
	Min
	Max
)

func (o Op) String() string {
	switch o {
	case Sum:
		return "sum"
	case Mean:
		return "mean"
	case Min:
		return "min"
	case Max:
		return "max"
	}
	return "unknown operation"
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
	switch op {
	case Min:
		wide = graph.ReduceMin(wide, 0)
	case Max:
		wide = graph.ReduceMax(wide, 0)
	default:
		wide = graph.ReduceSum(wide, 0)
	}
	return graph.ConvertDType(g.divided(wide, op), rows.DType())
}
