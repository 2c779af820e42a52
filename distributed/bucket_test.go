package distributed_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed"
	"gonbatch/distributed/pjrt"
)

// TestBuckets: random nodes in random order are each in one bucket, unless they are empty, of one
// element type and within its limit; those that are large enough have their own; what the graph
// computes first is reduced first; and no bucket could take the next one's first node.
func TestBuckets(t *testing.T) {
	backend := initWorld(t).Backend()
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		g := graph.NewGraph(backend, "buckets")
		nodes := make([]*graph.Node, 1+random.IntN(40))
		for i := range nodes {
			dtype := []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.BFloat16}[random.IntN(3)]
			nodes[i] = graph.Zeros(g, shapes.Make(dtype, random.IntN(100)))
		}
		random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		limits := map[dtypes.DType]int{dtypes.Float32: random.IntN(1000), dtypes.Float64: random.IntN(1000), dtypes.BFloat16: random.IntN(1000)}
		limit := func(dtype dtypes.DType) int { return limits[dtype] }
		alone := random.IntN(2) * (1 + random.IntN(500))
		checkBuckets(t, seed, nodes, limit, alone, distributed.Buckets(nodes, limit, alone))
		g.Finalize()
	}
}

func checkBuckets(t *testing.T, seed uint64, nodes []*graph.Node, limit func(dtypes.DType) int, alone int, got [][]int) {
	t.Helper()
	var all []int
	before := map[dtypes.DType]int{} // The size of the last bucket of the type.
	latest := graph.NodeId(-1)
	for _, b := range got {
		size, dtype := 0, nodes[b[0]].DType()
		for _, i := range b {
			if nodes[i].DType() != dtype {
				t.Errorf("seed %d: a bucket of %s has %s", seed, dtype, nodes[i].DType())
			}
			size += int(nodes[i].Shape().ByteSize())
		}
		if size > limit(dtype) && len(b) > 1 {
			t.Errorf("seed %d: a bucket of %d nodes has %d bytes, more than %d", seed, len(b), size, limit(dtype))
		}
		own := alone > 0 && int(nodes[b[0]].Shape().ByteSize()) >= alone
		if own && len(b) > 1 {
			t.Errorf("seed %d: a node of %d bytes is in a bucket with %d others, want its own from %d bytes", seed, nodes[b[0]].Shape().ByteSize(), len(b)-1, alone)
		}
		if full, ok := before[dtype]; ok && !own && full+int(nodes[b[0]].Shape().ByteSize()) <= limit(dtype) {
			t.Errorf("seed %d: a bucket of %d bytes has room for the next node", seed, full)
		}
		if !own {
			before[dtype] = size
		}
		if !slices.IsSortedFunc(b, func(i, j int) int { return int(nodes[i].Id()) - int(nodes[j].Id()) }) {
			t.Errorf("seed %d: the bucket %v is not in the order of the graph", seed, b)
		}
		if last := nodes[b[len(b)-1]].Id(); last <= latest {
			t.Errorf("seed %d: a bucket that is complete at node %d comes after one at %d", seed, last, latest)
		} else {
			latest = last
		}
		all = append(all, b...)
	}
	slices.Sort(all)
	var want []int
	for i, node := range nodes {
		if node.Shape().Size() > 0 {
			want = append(want, i)
		}
	}
	if !slices.Equal(all, want) {
		t.Fatalf("seed %d: %d nodes are in the buckets as %v, want %v", seed, len(nodes), all, want)
	}
}

// TestBucketsOfMixedTypes: compressed gradients, which don't travel while others are computed, stay
// in large buckets beside the averages of batch normalization, which do.
func TestBucketsOfMixedTypes(t *testing.T) {
	backend := initWorld(t).Backend()
	tests := []struct {
		split bool
		want  map[dtypes.DType]int
	}{
		{false, map[dtypes.DType]int{dtypes.BFloat16: 1, dtypes.Float32: 1}},
		{true, map[dtypes.DType]int{dtypes.BFloat16: 1, dtypes.Float32: 3}},
	}
	for _, test := range tests {
		pjrt.Split(test.split)
		t.Cleanup(func() { pjrt.Split(false) })
		g := graph.NewGraph(backend, "mixed")
		var nodes []*graph.Node
		for range 6 {
			nodes = append(nodes, graph.Zeros(g, shapes.Make(dtypes.BFloat16, 1<<18)), graph.Zeros(g, shapes.Make(dtypes.Float32, 1<<17)))
		}
		got := map[dtypes.DType]int{}
		for _, b := range distributed.Buckets(nodes, distributed.AverageBytes, 0) {
			got[nodes[b[0]].DType()]++
		}
		if !maps.Equal(got, test.want) {
			t.Errorf("travelling %v: %v buckets of each type, want %v", test.split, got, test.want)
		}
		g.Finalize()
	}
}
