package trainer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/gotype"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/data"
	"gonbatch/internal/tier"
	"gonbatch/models"
	"gonbatch/trainer"
)

// threeClasses classifies a number.
func threeClasses(scope *model.Scope, x *graph.Node) *graph.Node {
	return layers.Dense(scope.In("d"), x, true, 3)
}

func oneLogit(scope *model.Scope, x *graph.Node) *graph.Node {
	return layers.Dense(scope.In("d"), x, true, 1)
}

// embeds has a table of 5 tokens.
func embeds(scope *model.Scope, x *graph.Node) *graph.Node {
	return threeClasses(scope, graph.ReduceSum(layers.Embedding(scope, x, dtypes.Float32, 5, 4), 1))
}

// padded is embeds for tokens of which -1 is padding.
func padded(scope *model.Scope, x *graph.Node) *graph.Node {
	isToken := graph.ConvertDType(graph.NotEqual(x, graph.Scalar(x.Graph(), x.DType(), -1)), dtypes.Float32)
	each := graph.Mul(layers.Embedding(scope, x, dtypes.Float32, 5, 4), graph.InsertAxes(isToken, -1))
	return threeClasses(scope, graph.ReduceSum(each, 1))
}

// columns has a table for each of two inputs.
func columns(scope *model.Scope, x *graph.Node) *graph.Node {
	small := layers.Embedding(scope.In("small"), graph.Slice(x, graph.AxisRange(), graph.AxisElem(0)), dtypes.Float32, 5, 4)
	large := layers.Embedding(scope.In("large"), graph.Slice(x, graph.AxisRange(), graph.AxisElem(1)), dtypes.Float32, 300, 4)
	return threeClasses(scope, graph.Reshape(graph.Add(small, large), -1, 4))
}

// detects is a loss of sigmoids for labels of which any but 0, 1 and 2 is none of them.
func detects(labels, predictions []*graph.Node) *graph.Node {
	is := graph.OneHot(graph.Squeeze(labels[0], -1), 3, predictions[0].DType())
	return loss.BinaryCrossentropyLogits([]*graph.Node{is}, predictions)
}

// ignoring is a loss for labels of which -100 doesn't count.
func ignoring(labels, predictions []*graph.Node) *graph.Node {
	counts := graph.ConvertDType(graph.NotEqual(labels[0], graph.Scalar(labels[0].Graph(), labels[0].DType(), -100)), predictions[0].DType())
	losses := loss.SparseCategoricalCrossEntropyLogits(labels[:1], predictions)
	return graph.Div(graph.ReduceAllSum(losses), graph.ReduceAllSum(counts))
}

// weighted is a loss with a weight for each class.
func weighted(labels, predictions []*graph.Node) *graph.Node {
	weights := graph.Const(labels[0].Graph(), [][]float32{{1, 2, 3}})
	each := graph.ReduceSum(graph.Mul(graph.OneHot(graph.Squeeze(labels[0], -1), 3, predictions[0].DType()), weights), -1)
	return graph.ReduceAllMean(graph.Mul(each, loss.SparseCategoricalCrossEntropyLogits(labels, predictions)))
}

// column returns n numbers as a tensor of that many examples: all the same but one.
func column[T gotype.Supported](n, odd int, usual, other T, dims ...int) *tensors.Tensor {
	size := 1
	for _, d := range dims {
		size *= d
	}
	flat := make([]T, n*size)
	for i := range flat {
		flat[i] = usual
	}
	if odd >= 0 {
		flat[odd*size+size-1] = other
	}
	return tensors.FromFlatDataAndDimensions(flat, append([]int{n}, dims...)...)
}

// TestBounds: a class or a token that the model doesn't have ends Fit, Test and Predict, wherever
// it is, and those that don't count or have a meaning of their own don't.
func TestBounds(t *testing.T) { everywhere(t, testBounds) }

func testBounds(t *testing.T) {
	const n, first, late = 48, 3, 41
	numbers := func(*testing.T, int) *tensors.Tensor { return column[float32](n, -1, 1, 0, 1) }
	sparse := loss.SparseCategoricalCrossEntropyLogits
	net := func(f func(*model.Scope, *graph.Node) *graph.Node, l loss.LossFn) trainer.Task {
		return trainer.Supervised(f, l, plainSGD(0.01))
	}
	gpt := models.GPT(models.GPTConfig{VocabSize: 5, ContextLength: 4, Layers: 1, Heads: 2, Width: 8})
	mask := func(at int) *tensors.Tensor { return column(n, at, true, false) }
	tests := map[string]struct {
		task   trainer.Task
		inputs func(odd int) []*tensors.Tensor
		labels func(odd int) []*tensors.Tensor
		want   string // "" if it isn't refused.
	}{
		"class":    {task: net(threeClasses, sparse), labels: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, odd, 2, 3, 1)} }, want: "the label 3: the model has the classes 0 to 2 (they count from 0)"},
		"negative": {task: net(threeClasses, sparse), labels: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[int8](n, odd, 0, -1, 1)} }, want: "the label -1: the model has the classes 0 to 2 (GoMLX's losses take a Bool mask beside the labels)"},
		"255":      {task: net(threeClasses, sparse), labels: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[uint8](n, odd, 0, 255, 1)} }, want: "the label 255: the model"},
		"large":    {task: net(threeClasses, sparse), labels: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[int64](n, odd, 0, 1<<32, 1)} }, want: "the label 4294967296: the model"},
		"masked":   {task: net(threeClasses, sparse), labels: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, odd, 2, 9, 1), mask(odd)} }},
		"another masked": {task: net(threeClasses, sparse), labels: func(odd int) []*tensors.Tensor {
			return []*tensors.Tensor{column[int32](n, odd, 2, 9, 1), mask(odd - 1)}
		}, want: "the label 9: the model"},
		"weighted": {task: net(threeClasses, sparse), labels: func(odd int) []*tensors.Tensor {
			return []*tensors.Tensor{column[int32](n, odd, 2, 9, 1), column[float32](n, odd, 1, 0)}
		}},
		"ignored":       {task: net(threeClasses, ignoring), labels: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, odd, 2, -100, 1)} }},
		"class weights": {task: net(threeClasses, weighted), labels: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, odd, 2, 3, 1)} }, want: "the label 3: the model"},
		"binary":        {task: net(oneLogit, loss.BinaryCrossentropyLogits), labels: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[float32](n, odd, 1, 2, 1)} }, want: "the label 2: loss.BinaryCrossentropyLogits takes labels from 0 to 1"},
		"smooth binary": {task: net(oneLogit, loss.BinaryCrossentropyLogits), labels: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[float32](n, odd, 1, 0.1, 1)} }},
		"embedding": {
			task: net(embeds, sparse), inputs: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, odd, 4, 5, 2)} },
			labels: func(int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, -1, 2, 0, 1)} }, want: "the input 5 at place 1: /embeddings has the rows 0 to 4",
		},
		"padding": {
			task: net(padded, sparse), inputs: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, odd, 4, -1, 2)} },
			labels: func(int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, -1, 2, 0, 1)} },
		},
		"unknown padding": {
			task: net(embeds, sparse), inputs: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, odd, 4, -1, 2)} },
			labels: func(int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, -1, 2, 0, 1)} }, want: "the input -1 at place 1: /embeddings has the rows 0 to 4 (if it is padding",
		},
		"numbers as tokens": {
			task: net(func(scope *model.Scope, x *graph.Node) *graph.Node {
				return embeds(scope, graph.ConvertDType(x, dtypes.Int32))
			}, sparse),
			inputs: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[float32](n, odd, 4, 5, 2)} },
			labels: func(int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, -1, 2, 0, 1)} }, want: "the input 5 at place 1: /embeddings has the rows 0 to 4",
		},
		"columns": {
			task: net(columns, sparse), inputs: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, odd, 4, 299, 2)} },
			labels: func(int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, -1, 2, 0, 1)} },
		},
		"background": {task: net(threeClasses, detects), labels: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, odd, 2, -1, 1)} }},
		"rounded":    {task: net(oneLogit, loss.BinaryCrossentropyLogits), labels: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[float32](n, odd, 1, 1.0000001, 1)} }},
		"whole example masked": {
			task: net(gpt, func(labels, predictions []*graph.Node) *graph.Node {
				return models.NextTokenLoss(labels[:1], predictions)
			}),
			inputs: func(int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, -1, 4, 0, 4)} },
			labels: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, odd, 2, 5, 4), mask(odd)} },
		},
		"token": {
			task: net(gpt, models.NextTokenLoss), inputs: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, odd, 4, 19, 4)} },
			labels: func(int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, -1, 2, 0, 4)} }, want: "the input 19 at place 3: /tokens/embeddings has the rows 0 to 4",
		},
		"next token": {
			task: net(gpt, models.NextTokenLoss), inputs: func(int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, -1, 4, 0, 4)} },
			labels: func(odd int) []*tensors.Tensor { return []*tensors.Tensor{column[int32](n, odd, 2, 5, 4)} }, want: "the label 5 at place 3: the model has the classes 0 to 4",
		},
	}
	names := slices.Sorted(maps.Keys(tests)) // All ranks have the same order.
	if w := world(t); w.Size()*w.Devices() > 1 {
		names = tier.Half(names)
	}
	for _, name := range names {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			set := func(odd int) data.Dataset {
				inputs := []*tensors.Tensor{numbers(t, odd)}
				if test.inputs != nil {
					inputs = test.inputs(odd)
				}
				ds, err := data.Tensors("set", inputs, test.labels(odd))
				if err != nil {
					t.Fatal(err)
				}
				return ds
			}
			check := func(what string, err error, example int, want string) {
				t.Helper()
				if w := world(t); want != "" && w.Size() > 1 && w.Rank() != example%w.Size() { // Another rank has it.
					example, want = -1, fmt.Sprintf("rank %d failed: see its log", example%w.Size())
				}
				if example >= 0 && want != "" {
					want = fmt.Sprintf("example %d of set: %s", example, want)
				}
				if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", what, err, want)
				}
			}
			fresh := func() *trainer.Trainer {
				tr, _ := newTrainer(t, trainer.Config{BatchSize: 12, EvalBatchSize: 12, MaxEpochs: 1, Seed: 1, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}, test.task)
				return tr
			}
			none := func([]int, []*tensors.Tensor) error { return nil }
			ctx := t.Context()
			_, err := fresh().Test(ctx, set(first))
			check("Test", err, first, test.want)
			_, err = fresh().Test(ctx, set(late))
			check("Test, late", err, late, test.want)
			check("its validation", fresh().Fit(ctx, set(-1), set(late)), late, test.want)
			if world(t).Size() > 1 {
				return // The ranks that have no such example would wait for the one that has.
			}
			check("Fit", fresh().Fit(ctx, set(first), nil), first, test.want)
			check("Fit, late", fresh().Fit(ctx, set(late), nil), late, test.want)
			want := test.want
			if strings.Contains(want, "label") {
				want = "" // Predict doesn't use labels.
			}
			check("Predict", fresh().Predict(ctx, set(late), none), late, want)
			tr := fresh()
			check("Predict", tr.Predict(ctx, set(-1), none), -1, "")
			check("Fit after Predict", tr.Fit(ctx, set(first), nil), first, test.want)
			tr = fresh()
			check("Fit", tr.Fit(ctx, set(-1), set(-1)), -1, "")
			_, err = tr.Test(ctx, set(late))
			check("Test after Fit", err, late, test.want)
			check("Predict after Fit", tr.Predict(ctx, set(first), none), first, want)
		})
	}
}
