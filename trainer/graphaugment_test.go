package trainer_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/data"
	"gonbatch/distributed/collective"
	"gonbatch/distributed/ranktest"
	"gonbatch/models/augment"
	"gonbatch/trainer"
)

// plainImagesNet is a network whose images are only normalized.
func plainImagesNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = augment.Normalize(x, []float32{0.4}, []float32{0.3})
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = graph.Tanh(layers.Dense(scope.In("hidden"), x, true, 16))
	return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
}

// augmentedNet is the same network with all of package augment.
func augmentedNet(scope *model.Scope, inputs []*graph.Node) []*graph.Node {
	x := augment.RandomFlip(scope, augment.RandomCrop(scope, inputs[0], 1), 0.5)
	x = augment.RandomResizedCrop(scope, augment.RandomColor(scope, x, 0.2, 0.2, 0.2), 0.8)
	x, weights := augment.MixUp(scope, x, 0.4)
	return []*graph.Node{plainImagesNet(scope, x), weights}
}

func augmentedTask() trainer.Task {
	accuracy := metric.NewSparseCategoricalAccuracy("Mean Accuracy", "#acc")
	sgd := trainer.SGD{LearningRate: 0.1, Momentum: 0.9}
	return trainer.Supervised(augmentedNet, augment.MixUpLoss, sgd, accuracy)
}

const augmentedWeights = "AUGMENTED_WEIGHTS"

// TestGraphAugmentation: a training run with augmentation in the graph resumes bit for bit, and
// validates and predicts without augmentation. Two devices see the images of one; three ranks see
// others.
func TestGraphAugmentation(t *testing.T) {
	if ranktest.InRank() {
		graphAugmentation(t)
		return
	}
	file := tempFile(t, "weights")
	writeGob(t, file, graphAugmentation(t))
	for _, other := range []struct {
		ranks, devices int
	}{{1, 2}, {3, 1}} {
		t.Run(fmt.Sprintf("%d ranks of %d devices", other.ranks, other.devices), func(t *testing.T) {
			out, err := ranktest.Start(t, ranktest.Torchrun, other.ranks, []string{fmt.Sprint("GONBATCH_DEVICES=", other.devices), augmentedWeights + "=" + file})
			if err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

func graphAugmentation(t *testing.T) []float64 {
	for _, precision := range []string{"bf16-mixed", "32-true"} {
		c := trainer.Config{BatchSize: 12, MaxEpochs: 5, Precision: precision, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{EverySteps: 4}}
		c.Checkpoint.Dir = t.TempDir()
		tr, _ := newTrainer(t, c, augmentedTask())
		if err := tr.Fit(t.Context(), ranktest.Blobs(48), nil); err != nil {
			t.Fatal(err)
		}
		undisturbed := weights(t, tr.Store())
		c.Checkpoint.Dir = t.TempDir()
		tr, _ = newTrainer(t, c, augmentedTask(), killAt(7))
		if err := errors.Join(tr.Fit(t.Context(), ranktest.Blobs(48), nil), tr.WaitForCheckpoints()); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		tr, _ = newTrainer(t, c, augmentedTask())
		if err := tr.Fit(t.Context(), ranktest.Blobs(48), nil); err != nil {
			t.Fatal(err)
		}
		compareWeights(t, weights(t, tr.Store()), undisturbed)
		if precision == "32-true" {
			validatesPlainImages(t, tr)
			return likeOneRank(t, tr)
		}
	}
	return nil
}

// likeOneRank compares with the weights of one rank, unless this is that rank.
func likeOneRank(t *testing.T, tr *trainer.Trainer) []float64 {
	got := trainedFloats(t, tr, "/")
	path := os.Getenv(augmentedWeights)
	if path == "" {
		return got
	}
	var want []float64
	readGob(t, path, &want)
	if d := distance(got, want); (d < 1e-4) != (world(t).Size() == 1) {
		t.Errorf("%d ranks: the weights are %g from those of one rank with one device", world(t).Size(), d)
	}
	return got
}

// validatesPlainImages compares the loss of a test with that of predictions.
func validatesPlainImages(t *testing.T, tr *trainer.Trainer) {
	t.Helper()
	ds := ranktest.Blobs(20)
	metrics, err := tr.Test(t.Context(), ds)
	if err != nil {
		t.Fatal(err)
	}
	sum := make([]float64, 1)
	err = tr.PredictLabeled(t.Context(), ds, func(_ []int, predictions, labels []*tensors.Tensor) error {
		classes := tensors.MustCopyFlatData[int32](labels[0])
		for i, class := range classes {
			logits := tensors.MustCopyFlatData[float32](predictions[0])[i*ranktest.Classes : (i+1)*ranktest.Classes]
			all := 0.0
			for _, logit := range logits {
				all += math.Exp(float64(logit))
			}
			sum[0] += math.Log(all) - float64(logits[class])
		}
		return nil
	})
	if err == nil {
		sum, err = sumOverRanks(t, sum)
	}
	if err != nil {
		t.Fatal(err)
	}
	if want := sum[0] / 20; math.Abs(metrics["test/loss"]-want) > 1e-4 || metrics["test/accuracy"] <= 0.3 {
		t.Errorf("the loss of a test is %g, that of predictions %g, the accuracy is %g", metrics["test/loss"], want, metrics["test/accuracy"])
	}
}

// sumOverRanks adds up the numbers of all ranks.
func sumOverRanks(t *testing.T, own []float64) ([]float64, error) {
	all, err := world(t).AllGather(fmt.Append(nil, own[0]))
	if err != nil {
		return nil, err
	}
	sum := 0.0
	for _, text := range all {
		var part float64
		if _, err := fmt.Sscan(string(text), &part); err != nil {
			return nil, err
		}
		sum += part
	}
	return []float64{sum}, nil
}

// TestRanksAugmentDifferently: no two ranks, examples or steps have the same random numbers.
func TestRanksAugmentDifferently(t *testing.T) {
	const ranks, batch, steps = 3, 12, 4
	if !ranktest.InRank() {
		if out, err := ranktest.Start(t, ranktest.Torchrun, ranks, []string{"GONBATCH_DEVICES=1"}); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	var seen *model.Variable
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		g := x.Graph()
		seen = scope.VariableWithShape("seen", shapes.Make(dtypes.Float32, batch)).SetTrainable(false)
		x = augment.RandomColor(scope, x, 1, 0, 0)
		if scope.IsTraining(g) {
			seen.SetNodeValue(collective.Over(world(t)).AllGather(graph.ReduceMean(x, 1, 2, 3)))
		}
		return plainImagesNet(scope, x)
	}
	images := tensors.FromFlatDataAndDimensions(slices.Repeat([]float32{0.5}, batch*ranktest.Side*ranktest.Side), batch, ranktest.Side, ranktest.Side, 1)
	ds, err := data.Tensors("gray", []*tensors.Tensor{images}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]int32, batch), batch, 1)})
	if err != nil {
		t.Fatal(err)
	}
	distinct := map[float32]bool{}
	look := trainer.Callback{Name: "look", BatchEnd: func(*trainer.Event) error {
		for _, brightness := range tensors.MustCopyFlatData[float32](seen.MustValue()) {
			distinct[brightness] = true
		}
		return nil
	}}
	c := trainer.Config{BatchSize: batch, MaxEpochs: steps, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}
	tr, _ := newTrainer(t, c, blobTask(net), trainer.WithCallbacks(look))
	if err := tr.Fit(t.Context(), ds, nil); err != nil {
		t.Fatal(err)
	}
	if len(distinct) != batch*steps {
		t.Errorf("%d different images of %d", len(distinct), batch*steps)
	}
}
