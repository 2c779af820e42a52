package distributed_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/models/cnn"
)

// normNet convolves, and normalizes over the batch with GoMLX's layer and with package cnn's.
func normNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = graph.Tanh(norm.BatchNorm(scope.In("norm"), layers.Dense(scope.In("hidden"), x, true, 16), -1).Done())
	images := cnn.Convolution(scope.In("image"), graph.Reshape(x, -1, 4, 4, 1)).Channels(3).KernelSize(3).PadSame().MaxPool2x2().Relu().Done()
	images = cnn.BatchNorm(scope.In("image_norm"), images).Done()
	x = graph.Concatenate([]*graph.Node{x, graph.Reshape(images, -1, 12)}, -1)
	return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
}

// TestBatchNormOverDevices: the devices of one process normalize over the whole batch, as a single
// device does. (Ranks normalize over their own parts: see docs/adr/0003.)
func TestBatchNormOverDevices(t *testing.T) {
	if ranktest.InRank() {
		w := initWorld(t)
		store := model.NewStore()
		store.SetParam("/"+model.ParamInitialSeed, int64(42))
		sgd := w.Optimizer(optimizer.StochasticGradientDescent().WithLearningRate(0.05).WithDecay(false).Done())
		trainer := train.NewTrainer(w.Backend(), store, normNet, loss.SparseCategoricalCrossEntropyLogits, sgd, nil, nil)
		loader, err := w.Loader(ranktest.Blobs(145), distributed.LoaderOptions{BatchSize: 12, Shuffle: true, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		for done := 0; done < steps; done += loader.Steps() {
			if err := epoch(w, trainer, loader); err != nil {
				t.Fatal(err)
			}
		}
		if w.IsMain() {
			writeOutcome(t, outcome{Weights: weights(t, store)})
		}
		return
	}
	all := func(o outcome) (flat []float64) {
		for _, path := range []string{"/hidden/dense/weights", "/logits/dense/weights"} {
			for _, x := range o.Weights[path] {
				flat = append(flat, float64(x))
			}
		}
		return flat
	}
	one, _ := run(t, ranktest.Torchrun, 1)
	difference := func(devices string) float64 {
		other, _ := run(t, ranktest.Torchrun, 1, "GONBATCH_DEVICES="+devices)
		a, b := all(one), all(other)
		if len(a) == 0 || len(a) != len(b) {
			t.Fatalf("%d weights on one device, %d on several", len(a), len(b))
		}
		var sum, norm float64
		for i := range a {
			sum, norm = sum+(a[i]-b[i])*(a[i]-b[i]), norm+a[i]*a[i]
		}
		return math.Sqrt(sum / norm)
	}
	for _, devices := range []string{"2", "3"} {
		if d := difference(devices); !(d <= 1e-5) {
			t.Errorf("%s devices: the weights differ by %.2g", devices, d)
		}
	}
}
