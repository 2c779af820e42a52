package distributed_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
	"gonbatch/models/cnn"
)

// TestKernelsPerDevice: random networks learn the same on several devices of a process as on one.
// On each, kernels compute its part.
func TestKernelsPerDevice(t *testing.T) {
	if ranktest.InRank() {
		trainNetworks(t)
		return
	}
	library := ranktest.OneDNN(t)
	learned := func(devices string) []float64 {
		out, err := ranktest.Start(t, ranktest.Torchrun, 1, []string{rundir.EnvOneDNN + "=" + library, rundir.EnvDevices + "=" + devices})
		if err != nil {
			t.Fatalf("%s devices: %v\n%s", devices, err, out)
		}
		return printed(t, out, "learned")
	}
	one := learned("1")
	for _, devices := range tier.Fewer([]string{"4", "2"}, 1) {
		several := learned(devices)
		if len(one) != networks()*networkSteps || len(several) != len(one) {
			t.Fatalf("%d numbers on %s devices, %d on one", len(several), devices, len(one))
		}
		for i := range one {
			if difference := math.Abs(one[i] - several[i]); !(difference <= 1e-4*max(1, math.Abs(one[i]))) {
				t.Errorf("network %d on %s devices: %v, and %v on one", i/networkSteps, devices, several[i], one[i])
			}
		}
	}
}

const networkSteps = 3

// networks is how many are tried.
func networks() int { return tier.Tries(10, 4) }

// trainNetworks prints each network's losses.
func trainNetworks(t *testing.T) {
	w := initWorld(t)
	for seed := range uint64(networks()) {
		n := randomNetwork(rand.New(rand.NewPCG(seed, 1)))
		store := model.NewStore()
		store.SetParam("/"+model.ParamInitialSeed, int64(seed))
		before := pjrt.KernelCalls()
		trainer := train.NewTrainer(w.Backend(), store, n.logits, loss.SparseCategoricalCrossEntropyLogits, w.Optimizer(optimizer.StochasticGradientDescent().WithLearningRate(0.02).Done()), nil, nil)
		loader, err := w.Loader(pictures(n.batch*networkSteps), distributed.LoaderOptions{BatchSize: n.batch})
		if err != nil {
			t.Fatal(err)
		}
		for metrics, err := range w.TrainSteps(trainer, loader, nil) {
			if err != nil {
				t.Fatalf("%+v: %v", n, err)
			}
			fmt.Printf("learned %v\n", tensors.ToScalar[float32](metrics[0]))
		}
		if calls := pjrt.KernelCalls() - before; calls < 3 {
			t.Errorf("%+v: kernels compute only %d operations", n, calls)
		}
	}
}

// network has a convolution, products, and products of pairs of matrices.
type network struct {
	batch, filters, kernel, stride, hidden int
	same, transposed, deep                 bool
}

func randomNetwork(r *rand.Rand) network {
	return network{
		batch: 16 * (1 + r.IntN(3)), filters: 4 + r.IntN(40), kernel: 1 + 2*r.IntN(3), stride: 1 + r.IntN(2), hidden: 256 + 8*r.IntN(40),
		same: r.IntN(2) == 0, transposed: r.IntN(2) == 0, deep: r.IntN(2) == 0,
	}
}

// logits has operations that keep the batch in the first dimension, and others, of the same sizes,
// that don't.
func (n network) logits(scope *model.Scope, x *graph.Node) *graph.Node {
	c := cnn.Convolution(scope.In("convolution"), x).Channels(n.filters).KernelSize(n.kernel).Strides(n.stride)
	if n.same {
		c = c.PadSame()
	}
	x = graph.Tanh(c.Done())
	if n.deep { // Winograd's algorithm computes the second of these.
		x = graph.Tanh(cnn.Convolution(scope.In("wider"), x).Channels(48).KernelSize(1).Done())
		x = graph.Tanh(cnn.Convolution(scope.In("deeper"), x).Channels(32).KernelSize(3).PadSame().Done())
	}
	x = graph.Reshape(x, n.batch, -1)
	x = graph.Tanh(layers.Dense(scope.In("hidden"), x, true, n.hidden))
	pairs := graph.Reshape(x, n.batch, 8, n.hidden/8)
	pairs = graph.Einsum("bij,bik->bjk", pairs, graph.Sin(pairs))
	x = graph.Add(x, graph.ReduceAndKeep(graph.Reshape(pairs, n.batch, -1), graph.ReduceMean, 1))
	scores := layers.Dense(scope.In("scores"), x, false, n.batch) // Either dimension could be that of the batch.
	if n.transposed {
		scores = graph.Transpose(scores, 0, 1)
	}
	x = graph.Add(x, graph.MulScalar(graph.Dot(graph.Tanh(scores), x).Product(), 1/float64(n.batch)))
	return layers.Dense(scope.In("logits"), x, true, 10)
}
