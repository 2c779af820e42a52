package collective

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed/pjrt"
	"gonbatch/internal/plural"
)

// World is the job. *distributed.World is one.
type World interface {
	Rank() int
	Size() int
}

// Group is the ranks that collectives are over. Its methods are graph-building functions: they
// panic if a value can't take part, and the panic becomes the error of graph.NewExec or of the
// call.
type Group struct {
	world World
	// groups divides the world; nil means that it is one group.
	groups pjrt.Groups
	size   int
}

// Over returns the group of all ranks.
func Over(w World) Group { return Group{world: w, size: w.Size()} }

// Among divides the ranks into groups of the same size. Every collective of the result is then one
// of each group. Each rank must be in one group, once, and all ranks must name the same groups. The
// order of a group's ranks is that of the list.
//
// Over TCP, the ranks of a group are connected when a program first needs them. MPI creates a
// communicator then.
func Among(w World, groups [][]int) (Group, error) {
	if err := pjrt.Groups(groups).Check(w.Size()); err != nil {
		return Group{}, fmt.Errorf("collective: rank %d of %d: %w", w.Rank(), w.Size(), err)
	}
	if len(groups) == 0 {
		return Group{}, fmt.Errorf("collective: rank %d of %d: no groups: name them, or use Over for all ranks", w.Rank(), w.Size())
	}
	g := Group{world: w, size: len(groups[0])}
	for _, members := range groups {
		g.groups = append(g.groups, slices.Clone(members))
	}
	return g, nil
}

// Size returns the number of ranks in a group.
func (g Group) Size() int { return g.size }

// Index returns the place of this rank in its group, as an int32 scalar. It is not a constant,
// because all ranks compile the same program.
func (g Group) Index(in *graph.Graph) *graph.Node {
	if g.size == 1 {
		return graph.ScalarZero(in, dtypes.Int32)
	}
	key := indexKey(fmt.Sprint(g.groups))
	if known, ok := in.State(key).(*graph.Node); ok {
		return known
	}
	places := make([]int32, g.size)
	for i := range places {
		places[i] = int32(i)
	}
	sent := g.lowered(pjrt.Sum).AllToAll(graph.Const(in, places)) // Each rank sends its number to the others' place.
	index := graph.Reshape(graph.Slice(sent, graph.AxisElem(0)))
	in.AttachState(key, index)
	return index
}

// indexKey is the key of a graph's state that holds the result of Index.
type indexKey string

// lowered returns the group's collectives without gradients.
func (g Group) lowered(r pjrt.Reduction) pjrt.Collective {
	return pjrt.Collective{Reduction: r, Groups: g.groups}
}

// refuse panics with the name of this rank and of the value.
func (g Group) refuse(what string, x *graph.Node, format string, args ...any) {
	panic(fmt.Errorf("collective: rank %d of %d: %s of %s: "+format, append([]any{g.world.Rank(), g.world.Size(), what, x.Shape()}, args...)...))
}

// check panics if a value's type can't take part.
func (g Group) check(what string, x *graph.Node) {
	switch x.DType() {
	case dtypes.Float32, dtypes.Float64, dtypes.Float16, dtypes.BFloat16, dtypes.Int32, dtypes.Int64, dtypes.Bool:
		return
	}
	g.refuse(what, x, "only float32, float64, float16, bfloat16, int32, int64 and bool can take part: convert it first")
}

// checkCut panics if x can't be cut into a part for each rank.
func (g Group) checkCut(what string, x *graph.Node) {
	if x.Rank() == 0 || x.Shape().Dimensions[0]%g.size != 0 {
		g.refuse(what, x, "its first axis must be a multiple of the number of ranks in the group, %d: pad it", g.size)
	}
}

// checkRoot panics if there is no such rank.
func (g Group) checkRoot(x *graph.Node, root int) {
	if root < 0 || root >= g.size {
		g.refuse("broadcast", x, "the root %d is not in the group of %s: it is a place in the group, from 0 to %d", root, plural.Of(g.size, "rank"), g.size-1)
	}
}
