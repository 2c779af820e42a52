package pjrt

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/internal/plural"
)

// Collective has the collectives of the groups, with the reduction of those that reduce. They are
// graph-building functions without gradients: those of package collective have them. All of them
// have AllReduceSum's conditions.
//
// Values can be float32, float64, int32, int64 or uint8. Half precision can only be moved, and
// uint8 be summed neither.
type Collective struct {
	Reduction Reduction
	Groups    Groups
}

// AllReduce returns the reduction of x over the group, with x's shape.
func (c Collective) AllReduce(x *graph.Node) *graph.Node {
	d := does{op: allReduce, reduction: c.Reduction, groups: c.Groups}
	d.check(x)
	if x.Shape().Size() == 0 {
		return x
	}
	return d.place(x, graph.Identity)
}

// Broadcast returns the x of the rank at that place of the group.
func (c Collective) Broadcast(x *graph.Node, root int) *graph.Node {
	d := does{op: broadcast, root: root, groups: c.Groups}
	d.check(x)
	if size := c.Groups.size(registeredRanks()); root < 0 || root >= size {
		panic(fmt.Errorf("pjrt: broadcast of %s from rank %d of a group of %d: its ranks are 0 to %d", x.Shape(), root, size, size-1))
	}
	if x.Shape().Size() == 0 {
		return x
	}
	return d.place(x, graph.Identity)
}

// AllGather returns the values of x of the group's ranks, one after the other along the first axis.
// Of scalars, it returns a vector.
func (c Collective) AllGather(x *graph.Node) *graph.Node {
	d := does{op: allGather, groups: c.Groups}
	d.check(x)
	size, shape := c.Groups.size(registeredRanks()), x.Shape()
	dimensions := []int{size}
	if shape.Rank() > 0 {
		dimensions = slices.Clone(shape.Dimensions)
		dimensions[0] *= size
	}
	if shape.Size() == 0 {
		return graph.Reshape(x, dimensions...)
	}
	all := d.place(graph.Reshape(x, shape.Size()), func(x *graph.Node) *graph.Node {
		return graph.Concatenate(slices.Repeat([]*graph.Node{x}, size), 0)
	})
	return graph.Reshape(all, dimensions...)
}

// ReduceScatter returns this rank's part of the reduction of x over the group: x is cut along its
// first axis into equal parts, one for each of the group's ranks.
func (c Collective) ReduceScatter(x *graph.Node) *graph.Node {
	d := does{op: reduceScatter, reduction: c.Reduction, groups: c.Groups}
	dimensions := d.cut(x)
	size := x.Shape().Size() / c.Groups.size(registeredRanks())
	if size == 0 {
		return graph.Reshape(x, dimensions...)
	}
	part := d.place(graph.Reshape(x, x.Shape().Size()), func(x *graph.Node) *graph.Node {
		return graph.Slice(x, graph.AxisRange(0, size))
	})
	return graph.Reshape(part, dimensions...)
}

// AllToAll cuts x along its first axis into equal parts, one for each of the group's ranks, and
// returns the parts that these have for this rank, in their order.
func (c Collective) AllToAll(x *graph.Node) *graph.Node {
	d := does{op: allToAll, groups: c.Groups}
	d.cut(x)
	shape := x.Shape()
	if shape.Size() == 0 {
		return x
	}
	return graph.Reshape(d.place(graph.Reshape(x, shape.Size()), graph.Identity), shape.Dimensions...)
}

// cut checks x and returns the dimensions of its parts.
func (d does) cut(x *graph.Node) []int {
	d.check(x)
	size, shape := d.groups.size(registeredRanks()), x.Shape()
	if shape.Rank() == 0 || shape.Dimensions[0]%size != 0 {
		panic(fmt.Errorf("pjrt: %s of %s over %s: its first axis must be a multiple of the number of ranks: pad it", d.op, shape, plural.Of(size, "rank")))
	}
	dimensions := slices.Clone(shape.Dimensions)
	dimensions[0] /= size
	return dimensions
}
