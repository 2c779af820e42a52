package models_test

import (
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/google/go-cmp/cmp"

	"gonbatch/models"
	"gonbatch/models/modelstest"
)

func TestMNIST(t *testing.T) {
	store := model.NewStore()
	out, err := model.CallOnce(modelstest.Backend(t), store, models.MNIST, modelstest.Noise(1, 5, 28, 28, 1))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{5, 10}, out.Shape().Dimensions); diff != "" {
		t.Errorf("shape of the logits (-want +got):\n%s", diff)
	}
	n := 0
	for v := range store.IterVariables() {
		if v.Trainable { // The store also has the state of a random generator.
			n += v.Shape().Size()
		}
	}
	if n != 421_642 {
		t.Errorf("%d parameters, want 421,642", n)
	}
}

func TestMNISTRefusesOtherImages(t *testing.T) {
	_, err := model.CallOnce(modelstest.Backend(t), model.NewStore(), models.MNIST, modelstest.Noise(1, 5, 32, 32, 3))
	if err == nil || !strings.Contains(err.Error(), "models.MNIST: x has shape (Float32)[5, 32, 32, 3]; it must be [batch, 28, 28, 1]") {
		t.Errorf("error %v", err)
	}
}

// TestMNISTLearns: a few steps on one batch must fit it, so the gradient reaches every layer.
func TestMNISTLearns(t *testing.T) {
	step := trainer(t, models.MNIST, 32, []int{28, 28, 1})
	first := step()
	var last float32
	for range 30 {
		last = step()
	}
	if !(last < first/4) {
		t.Errorf("loss fell from %v to %v in 30 steps on one batch, want less than a quarter", first, last)
	}
}

// trainer returns a function that runs one step with a fixed batch and returns the loss.
func trainer(t testing.TB, network func(*model.Scope, *graph.Node) *graph.Node, batch int, size []int) func() float32 {
	t.Helper()
	size = append([]int{batch}, size...)
	images := tensors.MustCopyFlatData[float32](modelstest.Noise(3, size...))
	labels := make([]int32, batch)
	for i := range labels {
		labels[i] = int32(i % 10)
	}
	return stepper(t, network, 1e-3, func() train.Batch {
		return train.Batch{
			Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(images, size...)},
			Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(labels, batch, 1)},
		}
	})
}

// stepper returns a function that runs one step of Adam with a learning rate and returns the loss.
func stepper(t testing.TB, network func(*model.Scope, *graph.Node) *graph.Node, rate float64, batch func() train.Batch) func() float32 {
	t.Helper()
	store := model.NewStore()
	store.SetParam("initializers_seed", int64(42))
	tr := train.NewTrainer(modelstest.Backend(t), store, network, loss.SparseCategoricalCrossEntropyLogits,
		optimizer.Adam().LearningRate(rate).Done(), nil, nil)
	return func() float32 {
		metrics, err := tr.TrainStep(batch())
		if err != nil {
			t.Fatal(err)
		}
		return metrics[0].Value().(float32)
	}
}
