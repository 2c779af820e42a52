package distributed_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/models/cnn"
)

// deepNorms has batch normalizations of images and of vectors, one after the other. The first has
// channels whose variance is small compared with their mean. A bias before a normalization would
// have no gradient.
func deepNorms(scope *model.Scope, x *graph.Node) *graph.Node {
	x = cnn.Convolution(scope.In("first"), graph.AddScalar(x, 10)).Channels(5).KernelSize(3).UseBias(false).Done()
	x = graph.Tanh(cnn.BatchNorm(scope.In("norm1"), x).Momentum(0.5).Done())
	x = cnn.Convolution(scope.In("second"), x).Channels(4).KernelSize(3).Strides(2).PadSame().UseBias(false).Done()
	x = cnn.BatchNorm(scope.In("norm2"), x).Momentum(0.5).Epsilon(1e-5).Done()
	x = graph.Tanh(layers.Dense(scope.In("hidden"), graph.Reshape(x, x.Shape().Dimensions[0], -1), false, 16))
	x = cnn.BatchNorm(scope.In("norm3"), x).Momentum(0.5).Done()
	return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
}

// trainNorms trains for 50 steps at a global batch of 12, and leaves all variables of the model.
func trainNorms(t *testing.T) {
	w := initWorld(t)
	store := model.NewStore()
	store.SetParam("/"+model.ParamInitialSeed, int64(42))
	dtype := map[string]dtypes.DType{"float32": dtypes.Float32, "float64": dtypes.Float64, "bfloat16": dtypes.BFloat16}[os.Getenv("NORMS_TYPE")]
	network := func(scope *model.Scope, x *graph.Node) *graph.Node {
		if os.Getenv("LOCAL_NORMS") == "" {
			w.SyncBatchNorm(x.Graph())
		}
		return graph.ConvertDType(deepNorms(scope, graph.ConvertDType(x, dtype)), dtypes.Float32)
	}
	sgd := w.Optimizer(optimizer.StochasticGradientDescent().WithLearningRate(0.05).WithDecay(false).Done())
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
	metrics, err := w.Evaluate(t.Context(), trainer, ranktest.Blobs(103), 10) // Ranks have different numbers of batches.
	if err != nil {
		t.Fatal(err)
	}
	if w.IsMain() {
		writeOutcome(t, outcome{modelValues(t, store), metrics})
	}
}

// modelValues returns the weights and the moving averages.
func modelValues(t *testing.T, store *model.Store) map[string][]float32 {
	t.Helper()
	all := map[string][]float32{}
	for v := range store.IterVariables() {
		if !v.Trainable && (!strings.Contains(v.Path(), "/"+norm.BatchNormalizationScopeName+"/") || v.Name() == "avg_weight") {
			continue
		}
		switch v.DType() {
		case dtypes.Float32:
			all[v.Path()] = tensors.MustCopyFlatData[float32](v.MustValue())
		case dtypes.Float64:
			for _, x := range tensors.MustCopyFlatData[float64](v.MustValue()) {
				all[v.Path()] = append(all[v.Path()], float32(x))
			}
		case dtypes.BFloat16:
			for _, x := range tensors.MustCopyFlatData[bfloat16.BFloat16](v.MustValue()) {
				all[v.Path()] = append(all[v.Path()], x.Float32())
			}
		default:
			t.Fatalf("%s is %s", v.Path(), v.DType())
		}
	}
	return all
}

// furthest returns the largest relative difference of a variable, over the whole variable.
func furthest(t *testing.T, got, want outcome) (path string, relative float64) {
	t.Helper()
	if len(got.Weights) != len(want.Weights) || len(want.Weights) != 5+3*4 {
		t.Fatalf("%d variables against %d", len(got.Weights), len(want.Weights))
	}
	for name, values := range want.Weights {
		var difference, norm float64
		for i, value := range values {
			difference += math.Pow(float64(got.Weights[name][i]-value), 2)
			norm += math.Pow(float64(value), 2)
		}
		if r := math.Sqrt(difference / norm); !(r <= relative) {
			path, relative = name, r
		}
	}
	return path, relative
}

// TestSyncBatchNorm: a network with batch normalizations has the same weights, moving averages and
// metrics on any number of ranks: with 64 bits, almost every digit.
func TestSyncBatchNorm(t *testing.T) {
	if ranktest.InRank() {
		trainNorms(t)
		return
	}
	tolerances := map[string]float64{"float64": 1e-6, "float32": 1e-3, "bfloat16": 0.2}
	for _, dtype := range tier.Fewer([]string{"float64", "float32", "bfloat16"}, 1) {
		tolerance := tolerances[dtype]
		kind := "NORMS_TYPE=" + dtype
		want, _ := run(t, ranktest.Torchrun, 1, kind)
		if loss := want.Metrics[0].Value; !(loss < 1) {
			t.Errorf("%s: one rank learnt nothing: %s", dtype, want.Metrics)
		}
		worlds := []world{
			{ranktest.OpenMPI, 2, nil}, {ranktest.Torchrun, 3, nil}, {ranktest.Torchrun, 1, []string{"GONBATCH_DEVICES=2"}}, {ranktest.Torchrun.OnGPUs(t, 2), 2, nil},
		}
		if dtype == "float64" {
			worlds = append(worlds, world{ranktest.MPICH, 2, nil}, world{ranktest.OpenMPI, 4, nil}, world{ranktest.MPICH, 3, nil}, world{ranktest.Torchrun, 4, nil})
		}
		for _, other := range tier.Fewer(worlds, 5) {
			t.Run(fmt.Sprintf("%s, %d ranks, %s, %v", dtype, other.ranks, other.launcher, other.env), func(t *testing.T) {
				got, _ := run(t, other.launcher, other.ranks, append(other.env, kind)...)
				if path, relative := furthest(t, got, want); !(relative <= tolerance) {
					t.Errorf("%s: relative difference %.2g", path, relative)
				}
				if got, want := got.Metrics[0].Value, want.Metrics[0].Value; !(math.Abs(got-want) <= tolerance*max(want, 0.5)) {
					t.Errorf("loss %v, want %v", got, want)
				}
			})
		}
	}
	one, _ := run(t, ranktest.Torchrun, 1, "NORMS_TYPE=float64")
	alone, _ := run(t, ranktest.Torchrun, 2, "NORMS_TYPE=float64", "LOCAL_NORMS=1")
	if path, relative := furthest(t, alone, one); relative < 1e-3 {
		t.Errorf("each rank normalizes its own part, and the largest difference is %.2g, of %s: this test shows nothing", relative, path)
	}
}

// world is a number of ranks.
type world struct {
	launcher ranktest.Launcher
	ranks    int
	env      []string
}
