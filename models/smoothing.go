package models

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/train/loss"
)

// SmoothedCrossEntropy returns the cross-entropy with label smoothing, as PyTorch's
// CrossEntropyLoss(label_smoothing=s) does (Szegedy et al., Rethinking the Inception Architecture
// for Computer Vision, 2016, section 7): the share s of each label is spread evenly over all
// classes. s must be from 0 to 1.
//
// Labels and predictions are those of GoMLX's SparseCategoricalCrossEntropyLogits: [batch, 1] of an
// integer type, after them a mask or weights, and logits, [batch, classes]. With
// trainer.WithEvalLoss, validations compute the loss without smoothing.
func SmoothedCrossEntropy(s float64) loss.LossFn {
	if !(s >= 0 && s <= 1) {
		panic(fmt.Errorf("models.SmoothedCrossEntropy: the share %g: it must be from 0 to 1", s))
	}
	return func(labels, predictions []*graph.Node) *graph.Node {
		chosen := loss.SparseCategoricalCrossEntropyLogits(labels, predictions)
		logits := predictions[0]
		even := graph.MulScalar(graph.OnesLike(logits), 1/float64(logits.Shape().Dim(-1)))
		spread := loss.CategoricalCrossEntropyLogits(slices.Concat([]*graph.Node{even}, labels[1:]), predictions)
		return graph.Add(graph.MulScalar(chosen, 1-s), graph.MulScalar(spread, s))
	}
}
