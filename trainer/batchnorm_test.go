package trainer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/models/cnn"
	"gonbatch/trainer"
)

// normalized is a layer with batch normalization.
func normalized(scope *model.Scope, x *graph.Node, width int) *graph.Node {
	x = layers.Dense(scope, x, false, width)
	return graph.Tanh(cnn.BatchNorm(scope, x).Momentum(0.8).Done())
}

func normalizedNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = normalized(scope.In("hidden"), graph.Reshape(x, x.Shape().Dimensions[0], -1), 16)
	return layers.Dense(scope.In("logits"), normalized(scope.In("again"), x, 8), true, ranktest.Classes)
}

// normalizedGAN has a generator and a discriminator with batch normalization; the gradient of the
// generator's loss passes through both.
func normalizedGAN(scope *model.Scope, inputs, _ []*graph.Node) []*graph.Node {
	real := graph.Reshape(inputs[0], inputs[0].Shape().Dimensions[0], -1)
	generator := scope.In("generator")
	fake := layers.Dense(generator.In("out"), normalized(generator.In("hidden"), graph.Sin(graph.MulScalar(real, 7)), 8), true, lastSize(real))
	judge := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return layers.Dense(scope.In("out"), normalized(scope.In("hidden"), x, 8), true, 1)
	}
	onReal, onFake := judge(scope.In("discriminator"), real), judge(scope.Shared("discriminator"), fake)
	square := func(x *graph.Node, want float64) *graph.Node {
		return graph.ReduceAllMean(graph.Square(graph.AddScalar(x, -want)))
	}
	return []*graph.Node{square(onFake, 1), graph.Add(square(onReal, 1), square(onFake, 0))}
}

func lastSize(x *graph.Node) int { return x.Shape().Dimensions[x.Rank()-1] }

// normsCase is a training run with random settings.
type normsCase struct {
	Config trainer.Config
	GAN    bool
	Adam   bool
}

func randomNorms(r *rand.Rand) normsCase {
	c := normsCase{GAN: r.IntN(2) == 0, Adam: r.IntN(2) == 0}
	c.Config = trainer.Config{
		MaxSteps: 6 + r.IntN(6), BatchSize: 12 * (1 + r.IntN(2)), AccumulateGradBatches: 1 + r.IntN(3), Seed: r.Uint64N(9), Precision: "64-true",
		GradientClipNorm: float64(r.IntN(2)), Loggers: []string{"none"},
	}
	c.Config.Schedule.Kind = []string{"constant", "cosine"}[r.IntN(2)]
	return c
}

func (c normsCase) task() trainer.Task {
	opt := func() optimizer.Interface {
		if c.Adam {
			return optimizer.Adam().LearningRate(0.01).Done()
		}
		return trainer.SGD{LearningRate: 0.05, Momentum: 0.9}
	}
	if !c.GAN {
		return trainer.Supervised(normalizedNet, loss.SparseCategoricalCrossEntropyLogits, opt())
	}
	return trainer.Adversarial(normalizedGAN, trainer.Objective{Name: "g", Scope: "/generator", Optimizer: opt()}, trainer.Objective{Name: "d", Scope: "/discriminator", Optimizer: opt()})
}

// modelValues returns the weights and the moving averages, in order of their paths.
func modelValues(t *testing.T, tr *trainer.Trainer) (all []float64) {
	t.Helper()
	byPath := map[string][]float64{}
	var paths []string
	for v := range tr.Store().IterVariables() {
		if v.DType() == dtypes.Float64 && (v.Trainable || strings.Contains(v.Path(), "/"+norm.BatchNormalizationScopeName+"/")) {
			paths, byPath[v.Path()] = append(paths, v.Path()), tensors.MustCopyFlatData[float64](v.MustValue())
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		all = append(all, byPath[path]...)
	}
	return all
}

// normsRank trains the cases, and leaves what each has trained.
func normsRank(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	local := os.Getenv("LOCAL") != ""
	var all [][]float64
	for range 8 {
		c := randomNorms(r)
		c.Config.LocalBatchNorm = local
		tr, _ := newTrainer(t, c.Config, c.task())
		if err := tr.Fit(t.Context(), ranktest.Blobs(200), ranktest.Blobs(31)); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		all = append(all, modelValues(t, tr))
	}
	if world(t).IsMain() {
		writeGob(t, os.Getenv("OUTCOME"), all)
	}
}

// TestBatchNormOverRanks: networks with batch normalization train alike on any number of ranks,
// whatever the optimizer, the schedule, accumulation and clipping, also two networks against each
// other. With LocalBatchNorm they don't.
func TestBatchNormOverRanks(t *testing.T) {
	if ranktest.InRank() {
		normsRank(t)
		return
	}
	train := func(ranks int, env ...string) (all [][]float64) {
		path := filepath.Join(t.TempDir(), "outcome")
		out, err := ranktest.Start(t, ranktest.Torchrun, ranks, append(env, "OUTCOME="+path, "GONBATCH_DEVICES=1"))
		if err != nil {
			t.Fatalf("%d ranks: %v\n%s", ranks, err, out)
		}
		readGob(t, path, &all)
		return all
	}
	furthest := func(got, want []float64) float64 {
		if len(got) != len(want) || len(want) < 100 {
			t.Fatalf("%d values, and %d on one rank", len(got), len(want))
		}
		return distance(got, want) / math.Sqrt(float64(len(want)))
	}
	one := train(1)
	for _, ranks := range tier.Fewer([]int{3, 2, 4}, 1) {
		for i, got := range train(ranks) {
			if d := furthest(got, one[i]); !(d < 1e-8) {
				t.Errorf("%d ranks, training %d: values differ by %g", ranks, i, d)
			}
		}
	}
	for i, got := range train(2, "LOCAL=1") {
		if d := furthest(got, one[i]); d < 1e-4 {
			t.Errorf("training %d: each rank normalizes its own part, and values differ by %g only: this test shows nothing", i, d)
		}
	}
	if fmt.Sprint(train(1, "LOCAL=1")) != fmt.Sprint(one) {
		t.Error("on one rank, LocalBatchNorm changes something")
	}
}
