package pjrt_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
)

// everyTransport runs the body on n ranks with each transport.
func everyTransport(t *testing.T, n int, body func(t *testing.T, rank int, backend compute.Backend)) {
	t.Helper()
	if ranktest.InRank() {
		rank, backend := openers[os.Getenv(lowering)](t)
		body(t, rank, backend)
		return
	}
	ranktest.RunWith(t, []ranktest.Launcher{
		ranktest.OpenMPI.With(" by MPI", lowering+"=mpi"), ranktest.MPICH.With(" by MPI", lowering+"=mpi"), ranktest.Torchrun.With(" over TCP", lowering+"=tcp"),
	}, n, nil)
}

// travelling returns a program that reduces pieces of x, of several types, and computes meanwhile.
// Further collectives begin while they travel.
func travelling(x *graph.Node) []*graph.Node {
	var pieces []*graph.Node
	begin := 0
	for i, n := range []int{1, 100_000, 7, 300_000, 33} {
		piece := graph.MulScalar(graph.Slice(x, graph.AxisRange(begin, begin+n)), 1/float64(i+3))
		if i%2 == 1 {
			piece = graph.ConvertDType(piece, dtypes.Float64)
		}
		pieces = append(pieces, piece)
		begin += n
	}
	means := make([]func() *graph.Node, len(pieces))
	var others []*graph.Node
	for i, piece := range pieces {
		means[i] = pjrt.StartAllReduceMean(piece)
		if i%2 == 1 {
			others = append(others, pjrt.AllGather(graph.Slice(x, graph.AxisRange(i, i+5))), pjrt.AllReduceSum(graph.ReduceAllSum(graph.Sin(piece))))
		}
	}
	others = append(others, pjrt.StartAllReduceMean(graph.ConvertDType(pieces[2], dtypes.BFloat16))(), pjrt.StartAllReduceMean(graph.Slice(x, graph.AxisRange(0, 0)))())
	for i, mean := range means {
		others = append(others, mean(), graph.Add(pieces[i], graph.ScalarOne(x.Graph(), pieces[i].DType())))
	}
	return others
}

// TestSplit: means that travel while the program computes have the same bits as others, over any
// number of steps.
func TestSplit(t *testing.T) {
	everyTransport(t, 3, func(t *testing.T, rank int, backend compute.Backend) {
		random := rand.New(rand.NewPCG(7, uint64(rank)))
		values := make([]float32, 400_141)
		run := func(split bool) *graph.Exec {
			pjrt.Split(split)
			defer pjrt.Split(false)
			exec := graph.MustNewExec(backend, travelling)
			if _, err := exec.Compile(shapes.Make(dtypes.Float32, len(values))); err != nil {
				t.Fatal(err)
			}
			return exec
		}
		plain, split := run(false), run(true)
		for step := range 8 {
			for i := range values {
				values[i] = random.Float32() - 0.5
			}
			x := tensors.FromFlatDataAndDimensions(values, len(values)) // Of a slice, GoMLX would look at each number.
			want, got := plain.MustCall(x), split.MustCall(x)
			for i := range want {
				if !slices.Equal(bytesOf(t, got[i]), bytesOf(t, want[i])) {
					t.Fatalf("step %d: result %d of shape %s differs", step, i, want[i].Shape())
				}
			}
		}
	})
}

func bytesOf(t *testing.T, x *tensors.Tensor) (all []byte) {
	t.Helper()
	if err := x.ConstBytes(func(data []byte) { all = slices.Clone(data) }); err != nil {
		t.Fatal(err)
	}
	return all
}
