package distributed_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
)

// TestUpdatedInPlace: programs compute with the new values of large weights that are updated in
// place, as two devices do, each of which multiplies smaller matrices. XNNPACK would keep the first
// values.
func TestUpdatedInPlace(t *testing.T) {
	if ranktest.InRank() {
		trainWide(t)
		return
	}
	learned := map[string][]float64{}
	for _, devices := range []string{"1", "2"} {
		out, err := ranktest.Start(t, ranktest.Torchrun, 1, []string{rundir.EnvOneDNN + "=off", rundir.EnvDevices + "=" + devices})
		if err != nil {
			t.Fatalf("%s devices: %v\n%s", devices, err, out)
		}
		learned[devices] = printed(t, out, "learned")
	}
	one, two := learned["1"], learned["2"]
	if len(one) != wideSteps || len(two) != wideSteps {
		t.Fatalf("%v on one device, %v on two: want %d steps", one, two, wideSteps)
	}
	for i := range one {
		if !(math.Abs(one[i]-two[i]) <= 1e-4*one[i]) {
			t.Errorf("step %d: loss %v on one device, %v on two", i, one[i], two[i])
		}
	}
}

const wideSteps = 4

// trainWide prints the losses of a network whose first product is one of those for which XLA would
// take XNNPACK: of 24x768 and 768x3072 matrices.
func trainWide(t *testing.T) {
	const batch, units = 24, 3072
	w := initWorld(t)
	store := model.NewStore()
	store.SetParam("/"+model.ParamInitialSeed, int64(4))
	logits := func(scope *model.Scope, x *graph.Node) *graph.Node {
		x = graph.Tanh(layers.Dense(scope.In("wide"), graph.Reshape(x, batch, -1), true, units))
		return layers.Dense(scope.In("logits"), x, true, 10)
	}
	trainer := train.NewTrainer(w.Backend(), store, logits, loss.SparseCategoricalCrossEntropyLogits, w.Optimizer(optimizer.StochasticGradientDescent().WithLearningRate(0.02).Done()), nil, nil)
	loader, err := w.Loader(pictures(batch*wideSteps), distributed.LoaderOptions{BatchSize: batch})
	if err != nil {
		t.Fatal(err)
	}
	for metrics, err := range w.TrainSteps(trainer, loader, nil) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("learned %v\n", tensors.ToScalar[float32](metrics[0]))
	}
}
