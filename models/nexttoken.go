package models

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/internal/plural"
)

// NextTokenLoss is the loss of a language model: the mean over all places of -log p, where p is the
// probability that the model gives to the token which comes next. Its exponential is the
// perplexity.
//
// labels has the next tokens, [batch, n] of an integer type; predictions the model's logits,
// [batch, n, tokens].
func NextTokenLoss(labels, predictions []*graph.Node) *graph.Node {
	next, logits := labels[0], predictions[0]
	if len(labels) > 1 {
		panic(fmt.Errorf("models.NextTokenLoss: %s beside the labels: it takes no mask and no weights, and would count every token", plural.Of(len(labels)-1, "tensor")))
	}
	d := logits.Shape().Dimensions
	if !next.DType().IsInt() || len(d) != 3 || !slices.Equal(next.Shape().Dimensions, d[:2]) {
		panic(fmt.Errorf("models.NextTokenLoss: the labels are %s and the logits %s; they must be [batch, n] of an integer type and [batch, n, tokens]", next.Shape(), logits.Shape()))
	}
	logProbabilities := graph.LogSoftmax(logits, -1)
	chosen := graph.Mul(logProbabilities, graph.OneHot(next, d[2], logits.DType()))
	return graph.Neg(graph.DivScalar(graph.ReduceAllSum(chosen), float64(next.Shape().Size())))
}

// BitsPerToken returns the mean loss of a language model in bits: how many bits a compressor would
// need for each token of the text with the model's predictions. If a token is a character, it is
// the usual bits per character.
func BitsPerToken() metric.Interface {
	bits := func(_ *model.Scope, labels, predictions []*graph.Node) *graph.Node {
		return graph.DivScalar(NextTokenLoss(labels, predictions), math.Ln2)
	}
	return metric.NewMeanMetric("Mean Bits per Token", "#bits", metric.LossMetricType, bits, nil)
}
