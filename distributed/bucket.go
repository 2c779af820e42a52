package distributed

import (
	"cmp"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed/pjrt"
)

// overlappedBytes is the size of a bucket where a step continues computing during an all-reduce (Li
// et al., PyTorch Distributed, VLDB 2020, https://arxiv.org/abs/2006.15704, section 3.2). More of
// the backward pass runs during the all-reduces than with PyTorch's 25 MiB: see docs/adr/0015.
const overlappedBytes = 12 << 20

// stoppedBytes is the size of a bucket where an all-reduce stops the program: so large that the
// latency of a second one doesn't count, and no larger, because a bucket is a copy of its
// gradients. With one bucket of 403 MB, a step used 600 MB more.
const stoppedBytes = 32 << 20

// travellingBytes is the size of a bucket that a thread of this process sends while the program
// computes: so small that those of a small network don't all wait for its last gradient. See
// docs/adr/0026. `go run ./bench -only nodes` measures other sizes.
const travellingBytes = 1 << 20

// A node of so many bytes has a bucket of its own: to copy it into a bucket of several, and out of
// it, would take longer than the latency of another all-reduce. MPI within a machine takes a few
// microseconds, and a network at least ten times as long. See docs/adr/0015.
const (
	aloneInMemory  = 64 << 10
	aloneOnNetwork = 1 << 20
)

// averageBytes returns how large a bucket of a type may be for an average. Half precision doesn't
// travel.
func averageBytes(dtype dtypes.DType) int {
	if pjrt.Splits() && !dtype.IsHalfPrecision() {
		return min(cmp.Or(pjrt.SplitBytes(), travellingBytes), bucketBytes())
	}
	return bucketBytes()
}

// averageAlone returns from how many bytes a node of an average has its own bucket. A size of
// buckets that was set holds for large nodes too.
func (w *World) averageAlone() int {
	if pjrt.SplitBytes() > 0 {
		return 0
	}
	return w.alone
}

// sameBytes is a limit for all types.
func sameBytes(limit int) func(dtypes.DType) int {
	return func(dtypes.DType) int { return limit }
}

// bucketBytes returns how large a bucket may be.
var bucketBytes = func() int {
	if pjrt.Overlaps() {
		return overlappedBytes
	}
	return stoppedBytes
}

// bucket is a group of nodes of one element type that one all-reduce averages.
type bucket struct {
	indices []int // Of the nodes.
	bytes   int
}

// buckets divides nodes into buckets of at most as many bytes as the limit for their type. A larger
// node has its own, and so has one of at least the bytes of alone, unless that is 0. Each bucket
// has nodes that the program computes one after another, and the buckets are in the order in which
// they become complete: the gradients of the last layers are reduced while those of the first are
// computed. All ranks build the same graph, so they have the same buckets. Nodes without elements
// are in none.
func buckets(nodes []*graph.Node, limit func(dtypes.DType) int, alone int) [][]int {
	var all []*bucket
	open := map[dtypes.DType]*bucket{}
	for _, i := range inOrder(nodes) {
		if nodes[i].Shape().IsZeroSize() {
			continue
		}
		size, dtype := int(nodes[i].Shape().ByteSize()), nodes[i].DType()
		if alone > 0 && size >= alone {
			all = append(all, &bucket{indices: []int{i}, bytes: size})
			continue
		}
		b := open[dtype]
		if b == nil || size > limit(dtype)-b.bytes {
			b = &bucket{}
			open[dtype] = b
			all = append(all, b)
		}
		b.indices = append(b.indices, i)
		b.bytes += size
	}
	slices.SortFunc(all, func(a, b *bucket) int { return computed(nodes[a.last()], nodes[b.last()]) })
	groups := make([][]int, len(all))
	for i, b := range all {
		groups[i] = b.indices
	}
	return groups
}

func (b *bucket) last() int { return b.indices[len(b.indices)-1] }

// inOrder lists the indices of the nodes in the order in which the graph computes them.
func inOrder(nodes []*graph.Node) []int {
	indices := make([]int, len(nodes))
	for i := range indices {
		indices[i] = i
	}
	slices.SortStableFunc(indices, func(i, j int) int { return computed(nodes[i], nodes[j]) })
	return indices
}

// computed compares when a graph computes two nodes: an operation comes after its operands.
func computed(a, b *graph.Node) int { return int(a.Id()) - int(b.Id()) }
