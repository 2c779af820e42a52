package models_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/models"
	"gonbatch/models/modelstest"
)

// TestGPTLossesAgainstPyTorch trains a GPT for 50 updates of Adam, from the same weights and on the
// same tokens as PyTorch 2.15. testdata/gpt.py wrote PyTorch's losses, which it computed in double
// precision; the test computes in single precision.
func TestGPTLossesAgainstPyTorch(t *testing.T) {
	file, err := os.ReadFile("testdata/gpt.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct{ Losses []float64 }
	if err := json.Unmarshal(file, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Losses) != 50 || !(want.Losses[49] < 0.7*want.Losses[0]) {
		t.Fatalf("PyTorch's losses: %v; want 50, and a fall", want.Losses)
	}
	text, err := os.ReadFile("../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	config := models.GPTConfig{VocabSize: 128, ContextLength: 32, Layers: 2, Heads: 4, Width: 64}
	store := gptLikeTorch(t, config)
	var lossFn loss.LossFn = models.NextTokenLoss
	adam := optimizer.Adam().LearningRate(2e-3).Epsilon(1e-8).Done()
	trainer := train.NewTrainer(modelstest.Backend(t), store, models.GPT(config), lossFn, adam, nil, nil)
	worst := 0.0
	for update, wanted := range want.Losses {
		metrics, err := trainer.TrainStep(licenseBatch(text, update, 8, config.ContextLength))
		if err != nil {
			t.Fatal(err)
		}
		got := float64(tensors.ToScalar[float32](metrics[0]))
		worst = max(worst, math.Abs(got/wanted-1))
		if !(math.Abs(got/wanted-1) < 1e-5) {
			t.Errorf("update %d: the loss is %g, PyTorch's is %g", update, got, wanted)
		}
	}
	t.Logf("the losses fall from %.4f to %.4f; the largest relative difference is %.1g", want.Losses[0], want.Losses[49], worst)
}

// gptInTorch names the variables of a GPT in testdata/gpt.py.
var gptInTorch = renaming(
	`^tokens/embeddings$`, `tokens.weight`, `^last/layer_normalization`, `last`,
	`^layer_(\d)/(attention|mlp)/`, `$2.$1.`, `\.layer_normalization`, `.norm`,
	`/(weights|gain)$`, `.weight`, `/(biases|offset)$`, `.bias`,
)

// gptLikeTorch returns the weights that testdata/gpt.py begins with.
func gptLikeTorch(t *testing.T, config models.GPTConfig) *model.Store {
	t.Helper()
	store := model.NewStore()
	if _, err := model.CallOnce(modelstest.Backend(t), store, models.GPT(config), tensors.FromValue([][]int32{{0}})); err != nil {
		t.Fatal(err) // It creates the variables.
	}
	for v := range store.IterVariables() {
		if !v.Trainable {
			continue
		}
		l := likeTorch(v.Path(), v.Shape().Dimensions)
		values := l.weights(gptInTorch(v.Path()))
		here := make([]float32, len(values))
		for i, place := range l.places() {
			here[place] = float32(values[i])
		}
		if err := v.SetValue(tensors.FromFlatDataAndDimensions(here, v.Shape().Dimensions...)); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// licenseBatch returns windows of a text, and the same windows one byte later, as testdata/gpt.py
// does.
func licenseBatch(text []byte, update, size, context int) train.Batch {
	var inputs, labels []int32
	for row := range size {
		start := (update*size + row) * context
		for i := range context {
			inputs = append(inputs, int32(text[(start+i)%len(text)]))
			labels = append(labels, int32(text[(start+i+1)%len(text)]))
		}
	}
	return train.Batch{
		Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(inputs, size, context)},
		Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(labels, size, context)},
	}
}
