package mpi_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/collective"
	"gonbatch/distributed/mpi"
	"gonbatch/distributed/ranktest"
)

// reduction is a random reduction over all ranks, or over groups of them, in shares.
type reduction struct {
	share, part int
	dtype       dtypes.DType
	op          collective.Op
	groups      [][]int
	values      [][]float64 // Of each rank, small integers.
}

func randomReduction(random *rand.Rand, ranks int) reduction {
	types := []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Int64, dtypes.Float16, dtypes.BFloat16}
	groups := [][][]int{{{0, 1, 2, 3}}, {{3, 1, 0, 2}}, {{0, 1}, {2, 3}}, {{3, 0}, {1, 2}}}
	r := reduction{
		share: 1 + random.IntN([]int{20, 300}[random.IntN(2)]), part: 1 + random.IntN(200), dtype: types[random.IntN(len(types))],
		op: []collective.Op{collective.Sum, collective.Min, collective.Max}[random.IntN(3)], groups: groups[random.IntN(len(groups))],
	}
	for range ranks {
		values := make([]float64, r.part*len(r.groups[0]))
		for i := range values {
			values[i] = float64(random.IntN(61) - 30)
		}
		r.values = append(r.values, values)
	}
	return r
}

// want returns an element of the reduction over a rank's group, and the rank's place in it.
func (r reduction) want(rank, i int) (value float64, place int) {
	for _, group := range r.groups {
		for at, member := range group {
			if member != rank {
				continue
			}
			for k, other := range group {
				x := r.values[other][i]
				switch {
				case k == 0:
					value = x
				case r.op == collective.Sum:
					value += x
				case r.op == collective.Min:
					value = min(value, x)
				default:
					value = max(value, x)
				}
			}
			return value, at
		}
	}
	panic("the rank is in no group")
}

// TestInShares: reductions of ranks in one machine's memory, in shares of any size, are those of a
// plain loop, for every operation, type and group.
func TestInShares(t *testing.T) {
	ranktest.Run(t, 4, func(t *testing.T) {
		w := initWorld(t)
		if mpi.Share() == 0 {
			t.Error("Init didn't notice that all ranks are on this machine")
		}
		random := rand.New(rand.NewPCG(5, 8)) // The same on all ranks.
		for range 20 {
			r := randomReduction(random, w.Size())
			mpi.SetShare(r.share)
			exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) []*graph.Node {
				among, err := collective.Among(w, r.groups)
				if err != nil {
					t.Fatal(err)
				}
				x = graph.ConvertDType(x, r.dtype)
				return []*graph.Node{
					graph.ConvertDType(among.AllReduce(x, r.op), dtypes.Float64),
					graph.ConvertDType(among.ReduceScatter(x, r.op), dtypes.Float64),
				}
			})
			results := exec.MustCall(r.values[w.Rank()])
			whole, part := tensors.MustCopyFlatData[float64](results[0]), tensors.MustCopyFlatData[float64](results[1])
			if len(whole) != len(r.values[0]) || len(part) != r.part {
				t.Fatalf("%+v: %d and %d elements", r, len(whole), len(part))
			}
			for i, got := range whole {
				want, place := r.want(w.Rank(), i)
				if got != want {
					t.Errorf("shares of %d, %s, operation %d, groups %v: element %d of the all-reduce is %v, want %v", r.share, r.dtype, r.op, r.groups, i, got, want)
				}
				if at := i - place*r.part; at >= 0 && at < r.part && part[at] != want {
					t.Errorf("shares of %d, %s, operation %d, groups %v: element %d of the reduce-scatter is %v, want %v", r.share, r.dtype, r.op, r.groups, at, part[at], want)
				}
			}
		}
	})
}
