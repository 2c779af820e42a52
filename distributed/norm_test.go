package distributed_test

import (
	"math"
	"strings"
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
// device does. With GoMLX's layer, ranks normalize their own parts: their weights differ, and rank
// 0 warns once.
func TestBatchNormOverDevices(t *testing.T) {
	if ranktest.InRank() {
		w := initWorld(t)
		store := model.NewStore()
		store.SetParam("/"+model.ParamInitialSeed, int64(42))
		sgd := w.Optimizer(optimizer.StochasticGradientDescent().WithLearningRate(0.05).WithDecay(false).Done())
		network := func(scope *model.Scope, x *graph.Node) *graph.Node {
			w.SyncBatchNorm(x.Graph())
			return normNet(scope, x)
		}
		trainer := train.NewTrainer(w.Backend(), store, network, loss.SparseCategoricalCrossEntropyLogits, sgd, nil, nil)
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
	difference := func(other outcome) float64 {
		a, b := all(one), all(other)
		if len(a) == 0 || len(a) != len(b) {
			t.Fatalf("%d weights on one device, %d on others", len(a), len(b))
		}
		var sum, norm float64
		for i := range a {
			sum, norm = sum+(a[i]-b[i])*(a[i]-b[i]), norm+a[i]*a[i]
		}
		return math.Sqrt(sum / norm)
	}
	for _, devices := range []string{"2", "3"} {
		other, out := run(t, ranktest.Torchrun, 1, "GONBATCH_DEVICES="+devices)
		if d := difference(other); !(d <= 1e-5) || strings.Contains(out, "cnn.BatchNorm") {
			t.Errorf("%s devices: the weights differ by %.2g:\n%s", devices, d, out)
		}
	}
	other, out := run(t, ranktest.Torchrun, 2)
	if d := difference(other); !(d > 0.05 && d < 0.09) {
		t.Errorf("2 ranks: the weights differ by %.2g, want about 7 %%", d)
	}
	const warning = "gonbatch: warning: 1 of the model's 2 batch normalizations use each rank's own part of the batch: replace norm.BatchNorm by cnn.BatchNorm"
	if n := strings.Count(out, warning); n != 1 {
		t.Errorf("2 ranks: %d warnings:\n%s", n, out)
	}
}
