package models_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/models"
	"gonbatch/models/modelstest"
)

// BenchmarkGPTStep runs training steps of a GPT of 0.8 million parameters with 32 x 64 tokens.
func BenchmarkGPTStep(b *testing.B) {
	step := gptTrainer(b, models.GPTConfig{VocabSize: 100, ContextLength: 64, Layers: 4, Heads: 4, Width: 128}, 32)
	step()
	for b.Loop() {
		step()
	}
	b.ReportMetric(32*64*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}

// gptTrainer returns a function that runs one step with a fixed batch of tokens and returns the
// loss.
func gptTrainer(t testing.TB, config models.GPTConfig, batch int) func() float32 {
	t.Helper()
	store := model.NewStore()
	store.SetParam("initializers_seed", int64(42))
	var lossFn loss.LossFn = models.NextTokenLoss
	tr := train.NewTrainer(modelstest.Backend(t), store, models.GPT(config), lossFn, optimizer.Adam().LearningRate(1e-3).Done(), nil, nil)
	random := rand.New(rand.NewPCG(1, 2))
	tokens := make([]int32, batch*config.ContextLength+1)
	for i := range tokens {
		tokens[i] = int32(random.IntN(config.VocabSize))
	}
	return func() float32 {
		metrics, err := tr.TrainStep(train.Batch{
			Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(tokens[:len(tokens)-1], batch, config.ContextLength)},
			Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(tokens[1:], batch, config.ContextLength)},
		})
		if err != nil {
			t.Fatal(err)
		}
		return metrics[0].Value().(float32)
	}
}
