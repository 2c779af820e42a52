package trainer_test

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
)

// maskKind says how a combination leaves labels out.
type maskKind int

const (
	noMask     maskKind = iota
	boolMask            // GoMLX's.
	ownMask             // The loss is written by hand, and doesn't count the class 0.
	ownWeights          // The loss is a weighted mean: the classes have weights.
)

// masked has a mask beside its labels. Some batches are all masked.
type masked struct{ data.Dataset }

func (m masked) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	inputs, labels, err = m.Dataset.Batch(indices)
	mask := make([]bool, len(indices))
	for i, index := range indices {
		mask[i] = index/8%3 < 2 && index%3 != 1
	}
	return inputs, append(labels, tensors.FromFlatDataAndDimensions(mask, len(mask))), err
}

// blobs returns that many examples.
func (c combination) blobs(n int) data.Dataset {
	if c.masks == boolMask {
		return masked{ranktest.Blobs(n)}
	}
	return ranktest.Blobs(n)
}

// mean is the cross-entropy of the labels that count.
func (k maskKind) mean(labels, logits []*graph.Node) *graph.Node {
	if k == noMask || k == boolMask {
		return loss.SparseCategoricalCrossEntropyLogits(labels, logits)
	}
	counts := graph.ConvertDType(k.counts(labels[0]), logits[0].DType())
	hot := graph.OneHot(graph.Squeeze(labels[0], -1), ranktest.Classes, logits[0].DType())
	each := graph.Neg(graph.ReduceSum(graph.Mul(hot, graph.LogSoftmax(logits[0])), -1))
	return graph.Div(graph.ReduceAllSum(graph.Mul(each, counts)), graph.ReduceAllSum(counts))
}

// counts returns how much each label counts: the weight of a class is its number.
func (k maskKind) counts(labels *graph.Node) *graph.Node {
	classes := graph.Squeeze(labels, -1)
	if k == ownMask {
		return graph.GreaterThan(classes, graph.ZerosLike(classes))
	}
	return classes
}

// accuracy counts the labels that the loss does.
func (k maskKind) accuracy(scope *model.Scope, labels, logits []*graph.Node) *graph.Node {
	switch k {
	case ownMask:
		labels = append(labels[:1:1], k.counts(labels[0]))
	case ownWeights:
		labels = append(labels[:1:1], graph.ConvertDType(k.counts(labels[0]), logits[0].DType()))
	}
	return metric.SparseCategoricalAccuracyGraph(scope, labels, logits)
}
