package trainer_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/checkpoint"
	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// pulled returns a task with one weight for each pixel, from 0, that the mean image of a batch
// pulls at: the gradient is weights - mean image.
func pulled(opt optimizer.Interface) trainer.Task {
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		flat := graph.Reshape(x, x.Shape().Dimensions[0], -1)
		weights := scope.In("pull").VariableWithValue("weights", make([]float32, ranktest.Side*ranktest.Side)).NodeValue(x)
		return graph.Sub(graph.InsertAxes(weights, 0), flat)
	}
	half := func(_, differences []*graph.Node) *graph.Node {
		return graph.DivScalar(graph.ReduceSum(graph.Square(differences[0]), -1), 2)
	}
	return trainer.Supervised(net, half, opt)
}

// published returns the weights after some updates by the formula that PyTorch documents for
// torch.optim.SGD, in double precision and one weight after the other. targets are the mean images
// of the updates, in turn.
func published(o trainer.SGD, updates int, targets [][]float64, clip float64, rate func(update int) float64) []float64 {
	weights, buffer := make([]float64, len(targets[0])), make([]float64, len(targets[0]))
	for t := range updates {
		gradient, norm := make([]float64, len(weights)), 0.0
		for i, w := range weights {
			gradient[i] = w - targets[t%len(targets)][i]
			norm += gradient[i] * gradient[i]
		}
		norm, scale := math.Sqrt(norm), 1.0
		if clip > 0 && norm > clip {
			scale = clip / norm
		}
		for i := range weights {
			g := scale*gradient[i] + o.WeightDecay*weights[i]
			if o.Momentum != 0 {
				if t > 0 {
					buffer[i] = o.Momentum*buffer[i] + (1-o.Dampening)*g
				} else {
					buffer[i] = g
				}
				if o.Nesterov {
					g += o.Momentum * buffer[i]
				} else {
					g = buffer[i]
				}
			}
			weights[i] -= rate(t) * g
		}
	}
	return weights
}

// meanOf returns the mean of all images, as a training run sees them in an epoch.
func meanOf(t *testing.T, ds data.Dataset, epoch int) []float64 {
	t.Helper()
	indices := make([]int, ds.Len())
	for i := range indices {
		indices[i] = i
	}
	inputs, _, err := data.EpochBatch(ds, epoch, indices)
	if err != nil {
		t.Fatal(err)
	}
	pixels := tensors.MustCopyFlatData[float32](inputs[0])
	mean := make([]float64, len(pixels)/ds.Len())
	for i, p := range pixels {
		mean[i%len(mean)] += float64(p) / float64(ds.Len())
	}
	return mean
}

// TestSGD: the weights match the published formula, on any number of ranks and devices, with
// accumulation, clipping and a schedule.
func TestSGD(t *testing.T) { everywhere(t, testSGD) }

func testSGD(t *testing.T) {
	const updates = 7
	halved := trainer.ScheduleConfig{Kind: "step", StepSize: 3, Gamma: 0.5}
	for _, c := range []struct {
		name   string
		sgd    trainer.SGD
		config trainer.Config
	}{
		{name: "plain", sgd: trainer.SGD{LearningRate: 0.3}},
		{name: "weight decay", sgd: trainer.SGD{LearningRate: 0.3, WeightDecay: 0.5}},
		{name: "heavy ball", sgd: trainer.SGD{LearningRate: 0.3, Momentum: 0.9}},
		{name: "dampened", sgd: trainer.SGD{LearningRate: 0.3, Momentum: 0.9, Dampening: 0.4, WeightDecay: 0.1}},
		{name: "Nesterov", sgd: trainer.SGD{LearningRate: 0.3, Momentum: 0.9, WeightDecay: 0.1, Nesterov: true}},
		{name: "scheduled", sgd: trainer.SGD{LearningRate: 0.3, Momentum: 0.9}, config: trainer.Config{Schedule: halved}},
		{name: "accumulated", sgd: trainer.SGD{LearningRate: 0.3, Momentum: 0.9, Nesterov: true}, config: trainer.Config{AccumulateGradBatches: 2}},
		{name: "clipped", sgd: trainer.SGD{LearningRate: 0.3, Momentum: 0.9, WeightDecay: 0.2}, config: trainer.Config{GradientClipNorm: 0.5}},
		{name: "all of it, 3 batches each", sgd: trainer.SGD{LearningRate: 0.2, Momentum: 0.8, Dampening: 0.1, WeightDecay: 0.2}, config: trainer.Config{AccumulateGradBatches: 3, GradientClipNorm: 0.5, Schedule: halved}},
	} {
		config := c.config
		config.BatchSize, config.MaxSteps, config.OverfitBatches = 12, updates, max(1, config.AccumulateGradBatches)
		tr, _ := newTrainer(t, config, pulled(c.sgd))
		if err := tr.Fit(t.Context(), ranktest.Blobs(48), nil); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		rate := func(update int) float64 {
			if config.Schedule.Kind == "" {
				return c.sgd.LearningRate
			}
			return c.sgd.LearningRate * config.Schedule.Factor(update, updates)
		}
		want := published(c.sgd, updates, [][]float64{meanOf(t, ranktest.Blobs(12*config.OverfitBatches), 0)}, config.GradientClipNorm, rate)
		if d := distance(want, trainedFloats(t, tr, "/pull")); !(d < 1e-5) {
			t.Errorf("%s: the weights are %g from those of the formula", c.name, d)
		}
	}
}

// TestSGDResumes: the momentum is in the checkpoints, but not in the weights.
func TestSGDResumes(t *testing.T) {
	sgd := trainer.SGD{LearningRate: 0.1, Momentum: 0.9, Dampening: 0.2, WeightDecay: 1e-3}
	task := func() trainer.Task {
		return trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, sgd)
	}
	c := trainer.Config{BatchSize: 12, Seed: 1, MaxEpochs: 3, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}
	want, _ := newTrainer(t, c, task())
	mustFit(t, want)
	c.Checkpoint = trainer.CheckpointConfig{Dir: t.TempDir(), EverySteps: 5}
	tr, _ := newTrainer(t, c, task(), killAt(17))
	if err := tr.Fit(context.Background(), ranktest.Blobs(145), nil); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	got, _ := newTrainer(t, c, task())
	mustFit(t, got)
	compareWeights(t, weights(t, got.Store()), weights(t, want.Store()))
	names := namesInNewest(t, c.Checkpoint.Dir)
	if len(names) != 4 {
		t.Errorf("%s has %q, want two layers' weights and biases", checkpoint.WeightsFile, names)
	}
}

// TestSGDRefuses: values that make no sense are refused before anything is trained, by the field's
// name.
func TestSGDRefuses(t *testing.T) {
	for want, sgd := range map[string]trainer.SGD{
		"LearningRate must be more than 0 and finite, got 0":                     {},
		"LearningRate must be more than 0 and finite, got NaN":                   {LearningRate: math.NaN()},
		"Momentum must be at least 0 and less than 1, got -0.9":                  {LearningRate: 1, Momentum: -0.9},
		"Momentum must be at least 0 and less than 1, got 1":                     {LearningRate: 1, Momentum: 1},
		"Dampening needs a Momentum, got Dampening 0.1 and Momentum 0":           {LearningRate: 1, Dampening: 0.1},
		"WeightDecay must be at least 0 and finite, got -1":                      {LearningRate: 1, WeightDecay: -1},
		"Dampening must be finite and less than 1, got +Inf":                     {LearningRate: 1, Dampening: math.Inf(1)},
		"Nesterov needs a Momentum and no Dampening, got Momentum 0 and":         {LearningRate: 1, Nesterov: true},
		"Nesterov needs a Momentum and no Dampening, got Momentum 0.9 and Dampe": {LearningRate: 1, Momentum: 0.9, Dampening: 0.1, Nesterov: true},
	} {
		_, err := trainer.New(world(t), trainer.Config{}, pulled(sgd))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", sgd, err, want)
		}
	}
}

// TestSGDPrecisions: it trains in every precision, and in half precision the momentum is in single
// precision.
func TestSGDPrecisions(t *testing.T) {
	for _, precision := range []string{"32-true", "bf16-true", "64-true"} {
		sgd := trainer.SGD{LearningRate: 0.1, Momentum: 0.9, Dampening: 0.1, WeightDecay: 1e-3}
		tr, _ := newTrainer(t, trainer.Config{MaxSteps: 30, MaxEpochs: 10, BatchSize: 12, Precision: precision}, trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, sgd))
		mustFit(t, tr)
		metrics, err := tr.Test(t.Context(), ranktest.Blobs(145))
		if err != nil || !(metrics["test/loss"] < 1) {
			t.Errorf("%s: %v, %v", precision, metrics, err)
		}
		buffer := tr.Store().GetVariable("/optimizers/sgd/hidden/dense/weights_momentum")
		if buffer == nil || buffer.DType().IsHalfPrecision() || buffer.Trainable {
			t.Errorf("%s: momentum %v", precision, buffer)
		}
	}
}

// TestRateBelowZero: GoMLX's optimizers would take their default instead, or train nothing.
func TestRateBelowZero(t *testing.T) {
	decay := optimizer.Adam().WeightDecay(-0.1).Done()
	if _, err := trainer.New(world(t), trainer.Config{}, trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, decay)); err == nil || !strings.Contains(err.Error(), "optimizer.weight_decay: -0.1: it can't be negative") {
		t.Errorf("negative weight decay: %v", err)
	}
	store := model.NewStore()
	store.SetParam(optimizer.ParamLearningRate, 0.0)
	tr, _ := newTrainer(t, trainer.Config{MaxSteps: 1, BatchSize: 12}, trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().Done()), trainer.WithStore(store))
	if err := tr.Fit(t.Context(), ranktest.Blobs(36), nil); err == nil || !strings.Contains(err.Error(), "it is 0: it must be above 0") {
		t.Errorf("a rate of 0 from the store: %v", err)
	}
	for rate, wrong := range map[float64]bool{0: true, -0.1: true, math.NaN(): true, -1: false, 0.1: false} {
		for _, o := range []optimizer.Interface{optimizer.Adam().LearningRate(rate).Done(), optimizer.StochasticGradientDescent().WithLearningRate(rate).Done()} {
			_, err := trainer.New(world(t), trainer.Config{}, trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, o))
			if wrong != (err != nil) || wrong && !strings.Contains(err.Error(), "it must be above 0") {
				t.Errorf("%T with %g: %v", o, rate, err)
			}
		}
	}
}
