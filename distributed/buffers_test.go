package distributed_test

import (
	"fmt"
	"math"
	"strings"
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
)

// averageNet has a variable that is updated but not trained, as batch normalization has, and a
// dropout layer.
func averageNet(scope *model.Scope, x *graph.Node) *graph.Node {
	seen := scope.VariableWithValue("seen", float32(0)).SetTrainable(false)
	if scope.IsTraining(x.Graph()) {
		seen.SetNodeValue(graph.ReduceAllMean(x))
	}
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = layers.DropoutStatic(scope, x, 0.5)
	return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
}

// TestBuffersAndRandomStreams: after a step, the variables that it changes without training are
// equal on all ranks, and each rank has its own random numbers.
func TestBuffersAndRandomStreams(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 2, func(t *testing.T) {
		w := initWorld(t)
		store := model.NewStore()
		sgd := w.Optimizer(optimizer.StochasticGradientDescent().WithLearningRate(0.01).Done())
		trainer := train.NewTrainer(w.Backend(), store, averageNet, loss.SparseCategoricalCrossEntropyLogits, sgd, nil, nil)
		loader, err := w.Loader(ranktest.Blobs(8), distributed.LoaderOptions{BatchSize: 8})
		if err != nil {
			t.Fatal(err)
		}
		if err := epoch(w, trainer, loader); err != nil {
			t.Fatal(err)
		}
		inputs, _, err := ranktest.Blobs(8).Batch([]int{0, 1, 2, 3, 4, 5, 6, 7})
		if err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for _, pixel := range tensors.MustCopyFlatData[float32](inputs[0]) {
			want += float64(pixel) / float64(inputs[0].Size())
		}
		got := tensors.ToScalar[float32](store.GetVariable("/seen").MustValue())
		if math.Abs(float64(got)-want) > 1e-5 {
			t.Errorf("rank %d: the mean over all ranks' examples is %v, want %v", w.Rank(), got, want)
		}

		state := tensors.MustCopyFlatData[uint64](store.GetVariable("/" + model.RNGStateVariableName).MustValue())
		sum := []float64{float64(uint32(state[0])), float64(uint32(state[1]))}
		mine := append([]float64{}, sum...)
		if err := w.AllReduceSum(sum); err != nil {
			t.Fatal(err)
		}
		if sum[0] == 2*mine[0] && sum[1] == 2*mine[1] {
			t.Errorf("rank %d: both ranks have the random state %v", w.Rank(), state)
		}
	})
}

// noGradients is an optimizer that accepts only a loss, not gradients.
type noGradients struct{ optimizer.Interface }

// TestRefusals: mistakes in a program are reported on every rank, at the first step.
func TestRefusals(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 2, func(t *testing.T) {
		w := initWorld(t)
		tests := []struct {
			name string
			run  func() error
			want string
		}{
			{"an optimizer without gradients", func() error {
				opt := w.Optimizer(noGradients{optimizer.Adam().Done()})
				return fit(w, model.NewStore(), smallNet, opt)
			}, "noGradients can't be used by 2 ranks"},
			{"another model on each rank", func() error {
				net := func(scope *model.Scope, x *graph.Node) *graph.Node {
					return smallNet(scope.In("net_%d", w.Rank()), x)
				}
				return fit(w, model.NewStore(), net, w.Optimizer(optimizer.Adam().Done()))
			}, "rank 1 built a different model than rank 0"},
			{"a batch that can't be divided", func() error {
				_, err := w.Loader(ranktest.Blobs(100), distributed.LoaderOptions{BatchSize: 5})
				return err
			}, "load blobs: sampler: the batch size of 5 can't be divided evenly over 2 ranks and devices: use 4 or 6"},
			{"nothing to evaluate", func() error {
				_, err := w.Evaluate(t.Context(), nil, ranktest.Blobs(0), 10)
				return err
			}, "it has no examples"},
		}
		for _, test := range tests {
			if err := test.run(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("rank %d, %s: got %v, want %q", w.Rank(), test.name, err, test.want)
			}
		}
	})
}

func fit(w *distributed.World, store *model.Store, net func(*model.Scope, *graph.Node) *graph.Node, opt optimizer.Interface) error {
	trainer := train.NewTrainer(w.Backend(), store, net, loss.SparseCategoricalCrossEntropyLogits, opt, nil, nil)
	loader, err := w.Loader(ranktest.Blobs(8), distributed.LoaderOptions{BatchSize: 4})
	if err != nil {
		return err
	}
	return epoch(w, trainer, loader)
}

// TestFewerExamplesThanRanks: a rank without examples takes part in the evaluation, and doesn't
// change the result.
func TestFewerExamplesThanRanks(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 3, func(t *testing.T) {
		w := initWorld(t)
		trainer := newTrainer(w, 1)
		loader, err := w.Loader(ranktest.Blobs(12), distributed.LoaderOptions{BatchSize: 12})
		if err != nil {
			t.Fatal(err)
		}
		if err := epoch(w, trainer, loader); err != nil {
			t.Fatal(err)
		}
		metrics, err := w.Evaluate(t.Context(), trainer, ranktest.Blobs(2), 10)
		if err != nil {
			t.Fatal(err)
		}
		value, ok := metrics.Get("Mean Accuracy")
		if !ok || value != 0 && value != 0.5 && value != 1 {
			t.Errorf("rank %d: the accuracy over two examples is %v", w.Rank(), value)
		}
		if text := fmt.Sprint(metrics); !strings.HasPrefix(text, "Mean Loss ") || !strings.Contains(text, ", Mean Accuracy ") {
			t.Errorf("metrics print as %q", text)
		}
	})
}
