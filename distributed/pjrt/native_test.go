package pjrt_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/go-xla/compute/xla"
	xlapjrt "github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
)

// replicas is the number of devices that TestReplicas computes on.
const replicas = 3

// openReplicas opens the CPU with several devices. Each device is a rank.
func openReplicas(t *testing.T) compute.Backend {
	t.Helper()
	// Each device blocks a thread of XLA's pool until all devices have reached an all-reduce.
	t.Setenv("NPROC", strconv.Itoa(4*replicas))
	if err := pjrt.Load("cpu", pluginPath(t)); err != nil {
		t.Fatal(err)
	}
	pjrt.UseReplicas(replicas)
	xla.EnableAutoInstall(false)
	backend, err := xla.NewWithOptions("cpu", xlapjrt.NamedValuesMap{"cpu_device_count": int64(replicas)})
	if err != nil {
		t.Fatal(err)
	}
	return backend
}

// onEach runs a program on all devices at once, each with its own input. It doesn't use
// Exec.CallOnDevice, which forgets the device.
func onEach(t *testing.T, exec *graph.Exec, input func(rank int) any) [][]*tensors.Tensor {
	t.Helper()
	all, errs := make([][]*tensors.Tensor, replicas), make([]error, replicas)
	var group sync.WaitGroup
	for rank := range replicas {
		group.Go(func() { all[rank], _, errs[rank] = exec.CallWithGraphOnDevice(compute.DeviceNum(rank), input(rank)) })
	}
	group.Wait()
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
	return all
}

// TestReplicas checks the results of the native lowering, with XLA's own all-reduce between devices
// of one process. All devices run the same program, and each gets the sum.
func TestReplicas(t *testing.T) {
	if !ranktest.InRank() { // A process has one world.
		if out, err := ranktest.Start(t, ranktest.Torchrun, 1, nil); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	backend := openReplicas(t)
	t.Run("sums", func(t *testing.T) { replicasSum(t, backend) })
	t.Run("many", func(t *testing.T) { replicasSumMany(t, backend) })
	t.Run("sharded", func(t *testing.T) { replicasShard(t, backend) })
	t.Run("others", func(t *testing.T) { replicasOthers(t, backend) })
}

func replicasSum(t *testing.T, backend compute.Backend) {
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Int64, dtypes.BFloat16, dtypes.Float16} {
		for _, dimensions := range [][]int{{}, {5}, {3, 4}} {
			exec := graph.MustNewExec(backend, func(x *graph.Node) []*graph.Node {
				x = graph.ConvertDType(x, dtype)
				return []*graph.Node{graph.ConvertDType(pjrt.AllReduceSum(x), dtypes.Float32), graph.ConvertDType(pjrt.AllReduceSum(graph.Neg(x)), dtypes.Float32)}
			})
			for rank, got := range onEach(t, exec, func(rank int) any { return tensors.FromScalarAndDimensions(float32(rank+1), dimensions...) }) {
				for i, want := range []float32{replicas * (replicas + 1) / 2, -replicas * (replicas + 1) / 2} {
					if want := tensors.FromScalarAndDimensions(want, dimensions...); !got[i].Equal(want) {
						t.Errorf("%s%v: rank %d got %s, want %s", dtype, dimensions, rank, got[i], want)
					}
				}
			}
		}
	}
}

// replicasSumMany checks a program with many collectives of random numbers.
func replicasSumMany(t *testing.T, backend compute.Backend) {
	const n, length = 20, 7
	seed := rand.Uint64()
	value := func(rank, i, k int) float32 {
		rng := rand.New(rand.NewPCG(seed, uint64((rank*n+i)*length+k)))
		return float32(rng.IntN(1000))
	}
	exec := graph.MustNewExec(backend, func(x *graph.Node) []*graph.Node {
		sums := make([]*graph.Node, n)
		for i := range sums {
			sums[i] = pjrt.AllReduceSum(graph.Slice(x, graph.AxisElem(i)))
		}
		return sums
	})
	input := func(rank int) any {
		flat := make([]float32, n*length)
		for at := range flat {
			flat[at] = value(rank, at/length, at%length)
		}
		return tensors.FromFlatDataAndDimensions(flat, n, length)
	}
	for rank, sums := range onEach(t, exec, input) {
		for i, sum := range sums {
			for k, got := range tensors.MustCopyFlatData[float32](sum) {
				want := float32(0)
				for other := range replicas {
					want += value(other, i, k)
				}
				if got != want {
					t.Fatalf("seed %d: rank %d, collective %d, element %d: got %v, want %v", seed, rank, i, k, got, want)
				}
			}
		}
	}
}

// replicasOthers checks the collectives that replicasSum and replicasShard don't, with two devices
// in a group where that is possible. XLA has no broadcast on CPUs.
func replicasOthers(t *testing.T, backend compute.Backend) {
	min, max := pjrt.Collective{Reduction: pjrt.Min}, pjrt.Collective{Reduction: pjrt.Max, Groups: pjrt.Groups{{2, 0, 1}}}
	exec := graph.MustNewExec(backend, func(x *graph.Node) []*graph.Node {
		bytes := graph.ConvertDType(x, dtypes.Uint8)
		all := []*graph.Node{min.AllReduce(x), max.ReduceScatter(bytes), max.AllToAll(x), max.AllGather(bytes), pjrt.Collective{Groups: pjrt.Groups{{0}, {2}, {1}}}.AllReduce(x)}
		for i := range all {
			all[i] = graph.ConvertDType(all[i], dtypes.Float32)
		}
		return all
	})
	inputs := [][]float32{{1, 20, 3}, {10, 2, 30}, {100, 200, 0}}
	wants := [][][]float32{ // By rank. The places of max's group are those of ranks 2, 0 and 1.
		{{1, 2, 0}, {200}, {200, 20, 2}, {100, 200, 0, 1, 20, 3, 10, 2, 30}, {1, 20, 3}},
		{{1, 2, 0}, {30}, {0, 3, 30}, {100, 200, 0, 1, 20, 3, 10, 2, 30}, {10, 2, 30}},
		{{1, 2, 0}, {100}, {100, 1, 10}, {100, 200, 0, 1, 20, 3, 10, 2, 30}, {100, 200, 0}},
	}
	for rank, got := range onEach(t, exec, func(rank int) any { return inputs[rank] }) {
		for i := range got {
			if !slices.Equal(flatOf(got[i]), wants[rank][i]) {
				t.Errorf("rank %d, collective %d: got %v, want %v", rank, i, flatOf(got[i]), wants[rank][i])
			}
		}
	}
}
