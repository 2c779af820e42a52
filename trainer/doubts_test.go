package trainer_test

import (
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/data"
	"gonbatch/models"
	"gonbatch/trainer"
)

// TestDoubts: what is most likely a mistake in a model or its labels is said, once.
func TestDoubts(t *testing.T) {
	const n = 48
	after := func(net func(*model.Scope, *graph.Node) *graph.Node, f func(*graph.Node) *graph.Node) func(*model.Scope, *graph.Node) *graph.Node {
		return func(scope *model.Scope, x *graph.Node) *graph.Node { return f(net(scope, x)) }
	}
	softmax := func(x *graph.Node) *graph.Node { return graph.Softmax(x) }
	constant := func(x *graph.Node) *graph.Node { return graph.Ones(x.Graph(), x.Shape()) }
	gpt := models.GPT(models.GPTConfig{VocabSize: 5, ContextLength: 4, Layers: 1, Heads: 2, Width: 8})
	numbers, tokens := column[float32](n, 3, 1, 0, 1), column[int32](n, 3, 1, 2, 4)
	shifted := func(labels, predictions []*graph.Node) *graph.Node {
		next := graph.Slice(labels[0], graph.AxisRange(), graph.AxisRange(1))
		return models.NextTokenLoss([]*graph.Node{next}, []*graph.Node{graph.Slice(predictions[0], graph.AxisRange(), graph.AxisRange(0, -1))})
	}
	right := func(scope *model.Scope, x *graph.Node) *graph.Node {
		first, rest := graph.Slice(x, graph.AxisRange(), graph.AxisElem(0)), graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, -1))
		return gpt(scope, graph.Concatenate([]*graph.Node{graph.ZerosLike(first), rest}, 1))
	}
	noise := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return oneLogit(scope, scope.RandomNormal(x.Graph(), x.Shape()))
	}
	slots := func(scope *model.Scope, x *graph.Node) *graph.Node { // Which of 4 slots has each class.
		return graph.Softmax(graph.Reshape(layers.Dense(scope.In("d"), x, true, 12), -1, 4, 3), 1)
	}
	inside := func(scope *model.Scope, x *graph.Node) *graph.Node {
		y := threeClasses(scope, x)
		return graph.Add(y, graph.LogSoftmax(graph.Softmax(y)))
	}
	temperature := func(scope *model.Scope, x *graph.Node) *graph.Node {
		v := scope.In("t").VariableWithValue("log", float32(0)).NodeValue(x.Graph())
		return graph.Mul(threeClasses(scope, x), graph.Add(graph.OnesLike(v), graph.Log(graph.ReduceAllSum(graph.Exp(v)))))
	}
	masked := func(labels, predictions []*graph.Node) *graph.Node {
		counts := graph.Squeeze(graph.GreaterOrEqual(labels[0], graph.ZerosLike(labels[0])), -1)
		return loss.SparseCategoricalCrossEntropyLogits([]*graph.Node{labels[0], counts}, predictions)
	}
	sparse := loss.SparseCategoricalCrossEntropyLogits
	tests := map[string]struct {
		model          func(*model.Scope, *graph.Node) *graph.Node
		loss           loss.LossFn
		precision      string
		inputs, labels *tensors.Tensor
		want           string // "" if there is no doubt.
	}{
		"fine":                {threeClasses, sparse, "", numbers, column[int32](n, 3, 1, 0, 1), ""},
		"softmax":             {after(threeClasses, softmax), sparse, "", numbers, column[int32](n, 3, 1, 0, 1), "ends in a softmax"},
		"softmax in bfloat16": {after(threeClasses, softmax), sparse, "bf16-mixed", numbers, column[int32](n, 3, 1, 0, 1), "ends in a softmax"},
		"sigmoid":             {after(oneLogit, graph.Sigmoid), loss.BinaryCrossentropyLogits, "", numbers, numbers, "ends in a sigmoid"},
		"sigmoid, no logits":  {after(oneLogit, graph.Sigmoid), loss.BinaryCrossentropy, "", numbers, numbers, ""},
		"a logit":             {oneLogit, loss.BinaryCrossentropyLogits, "", numbers, numbers, ""},
		"no inputs":           {after(oneLogit, constant), loss.MeanSquaredError, "", numbers, numbers, "output does not depend on its inputs"},
		"a GPT":               {gpt, models.NextTokenLoss, "", tokens, column[int32](n, 3, 2, 1, 4), ""},
		"softmax, masked":     {after(threeClasses, softmax), masked, "", numbers, column[int32](n, 3, 1, 0, 1), "ends in a softmax"},
		"slots":               {slots, sparse, "", numbers, column[int32](n, 3, 1, 0, 4, 1), ""},
		"softmax inside":      {inside, sparse, "", numbers, column[int32](n, 3, 1, 0, 1), ""},
		"temperature":         {temperature, sparse, "", numbers, column[int32](n, 3, 1, 0, 1), ""},
		"noise":               {noise, loss.MeanSquaredError, "", numbers, numbers, ""},
		"a model that shifts": {right, models.NextTokenLoss, "", tokens, tokens, ""},
		"a loss that shifts":  {gpt, shifted, "", tokens, tokens, ""},
		"tokens to copy":      {gpt, models.NextTokenLoss, "", tokens, tokens, "the labels are the inputs"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ds, err := data.Tensors(name, []*tensors.Tensor{test.inputs}, []*tensors.Tensor{test.labels})
			if err != nil {
				t.Fatal(err)
			}
			tr, out := newTrainer(t, trainer.Config{MaxEpochs: 2, BatchSize: 20, Precision: test.precision, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}, trainer.Supervised(test.model, test.loss, plainSGD(0.01)))
			if err := tr.Fit(t.Context(), ds, nil); err != nil {
				t.Fatal(err)
			}
			doubts := strings.Count(out.String(), "ends in a ") + strings.Count(out.String(), "does not depend on its inputs") + strings.Count(out.String(), "the labels are the inputs")
			if !strings.Contains(out.String(), test.want) || doubts > 1 || (doubts == 1) != (test.want != "") {
				t.Errorf("want %q once:\n%s", test.want, out)
			}
		})
	}
}
